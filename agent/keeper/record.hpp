// The files of a stage's run directory that the keeper and the agent share. Plain text, "key value" a line;
// values are percent-encoded where they hold a control character, a '%' or nothing.
//
//   spec      by the agent, before the keeper starts
//   lock      by the agent; locked for as long as the keeper lives, which gets it as standard input
//   record    by the keeper, when the stage has started: who is who
//   log       by the keeper: the stage's output; log.1 is what came before
//   sock      by the keeper: its socket (protocol: clients.hpp)
//   exit      by the keeper, durably, when the stage's main process has ended
//   ready     by the agent: the stage's line that said so (the log may have moved on when the agent comes
//   back) link.key  by the agent: secret of the stage's links; removed once the stage is ready or gone
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/process.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::keeper {

inline constexpr const char* kSpecFile = "spec";
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kRecordFile = "record";
inline constexpr const char* kLogFile = "log";
inline constexpr const char* kOldLogFile = "log.1";
inline constexpr const char* kSocketFile = "sock";
inline constexpr const char* kExitFile = "exit";
inline constexpr const char* kReadyFile = "ready";
inline constexpr const char* kLinkKeyFile = "link.key";

// What the keeper is to run.
struct Spec {
  std::string mark;  // CLUSTER/NODE/REPLICA/RANK/EPOCH
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=VALUE"; TROIKA_STAGE is added by the keeper
  std::string directory = "/";
  Bytes log_limit{16u << 20};      // of log and log.1 together
  std::string cgroup;              // name of the cgroup to make; empty: none
  std::string secret;              // file that is removed when the stage has ended; empty: none
  std::uint32_t grace_ms = 10000;  // between SIGTERM and SIGKILL when the keeper itself gets SIGTERM
};

// Who is who, once the stage runs.
struct Record {
  platform::ProcessId keeper;
  platform::ProcessId stage;
  std::string cgroup;  // path; empty: none
  std::string at;      // RFC 3339
};

// How the stage's main process ended.
struct Exit {
  int code = 0;
  int signal = 0;
  bool requested = false;  // the keeper had been told to stop it
  std::string at;          // RFC 3339
};

std::string write(const Spec& spec);
std::string write(const Record& record);
std::string write(const Exit& exit);
Result<Spec> read_spec(std::string_view text);
Result<Record> read_record(std::string_view text);
Result<Exit> read_exit(std::string_view text);

std::string encode(std::string_view value);
Result<std::string> decode(std::string_view value);

}  // namespace troika::keeper
