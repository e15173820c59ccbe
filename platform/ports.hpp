// Who listens where. Mode 59.
#pragma once

#include <cstdint>
#include <string>

#include "vocabulary/result.hpp"

namespace troika::platform {

struct PortState {
  enum class Kind { Free, Taken, CannotTell };
  Kind kind = Kind::CannotTell;
  int pid = 0;          // of the owner; 0: not known
  std::string command;  // its command line
  std::string reason;   // of CannotTell
};

// `host` is a numeric address, "localhost", or a name (then only a listener on any address of the port
// counts).
PortState look_at_port(const std::string& host, std::uint16_t port);

}  // namespace troika::platform
