#include "agent/stage/addresses.hpp"

#include <charconv>

namespace troika::agent {

Result<HostPort> parse_address(const std::string& address) {
  const Error bad{"read the address", address, "HOST:PORT is expected"};
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad;
  HostPort out{address.substr(0, colon), 0};
  if (out.host.front() == '[' && out.host.back() == ']') out.host = out.host.substr(1, out.host.size() - 2);
  const char* begin = address.data() + colon + 1;
  const char* last = address.data() + address.size();
  const auto [end, error] = std::from_chars(begin, last, out.port);
  if (error != std::errc{} || end != last || out.port == 0) return bad;
  return out;
}

platform::PortState port_state(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed.ok()) return {platform::PortState::Kind::CannotTell, 0, {}, parsed.error().message()};
  return platform::look_at_port(parsed->host, parsed->port);
}

}  // namespace troika::agent
