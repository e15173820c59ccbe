// What every command of `troika` shares. A command is a pair of files, cli/NAME_command.{hpp,cpp}, with one
// function
//
//   void add_NAME(CLI::App& app, const Global& global, int& exit_status);
//
// that adds its subcommand to `app`; the subcommand's callback does the work and leaves its exit status.
// Options live in a std::shared_ptr captured by the callback. Results go to stdout, everything else to
// stderr.
#pragma once

#include <string>

#include "platform/tls.hpp"

namespace CLI {
class App;
}

namespace troika::cli {

// Exit statuses of `troika`; scripts rely on them.
enum Exit : int {
  kGood = 0,
  kWrong = 1,        // it ran and something is wrong
  kUsage = 2,        // usage or configuration
  kUnreachable = 3,  // the daemon or node cannot be reached
  kCannotTell = 4,
};

// Options before the command. Read only from a command's callback: filled when the command line is parsed.
struct Global {
  std::string socket;      // of the leader on this machine
  std::string leader;      // "host:port" of a leader elsewhere; empty: the socket
  platform::TlsFiles tls;  // the operator's, for `leader`
};

}  // namespace troika::cli
