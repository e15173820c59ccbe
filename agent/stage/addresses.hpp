// "host:port" as the stage's plan and configuration write it.
#pragma once

#include <cstdint>
#include <string>

#include "platform/ports.hpp"
#include "vocabulary/result.hpp"

namespace troika::agent {

struct HostPort {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};
Result<HostPort> parse_address(const std::string& address);

platform::PortState port_state(const std::string& address);

}  // namespace troika::agent
