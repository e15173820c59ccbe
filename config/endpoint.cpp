#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "config/cluster.hpp"

namespace troika::config {
namespace {

bool is_address(int family, const std::string& host) {
  unsigned char room[sizeof(in6_addr)];
  return ::inet_pton(family, host.c_str(), room) == 1;
}

bool is_host_name(std::string_view host) {
  constexpr std::size_t kLongest = 253;  // of a DNS name
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !host.empty() && host.size() <= kLongest && host.front() != '-' && host.front() != '.' &&
         std::all_of(host.begin(), host.end(), plain);
}

// A last label of digits alone is never a name: 10.0.0.256 is a wrong address.
bool looks_like_ipv4(std::string_view host) {
  const std::string_view last = host.substr(host.find_last_of('.') + 1);
  return !last.empty() && std::all_of(last.begin(), last.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool good_host(const std::string& host, bool bracketed) {
  if (bracketed) return is_address(AF_INET6, host);
  if (looks_like_ipv4(host)) return is_address(AF_INET, host);
  return is_host_name(host);
}

}  // namespace

std::string text(const Endpoint& endpoint) {
  const bool ipv6 = endpoint.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const Error bad{"read the address", "\"" + std::string(text) + "\"",
                  "host:port is expected, port 1 to 65535"};
  const std::size_t colon = text.find_last_of(':');
  if (colon == std::string_view::npos) return bad;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  Endpoint endpoint{std::string(host), 0};
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc{} || end != port.data() + port.size() || endpoint.port == 0) return bad;
  if (!good_host(endpoint.host, bracketed)) return bad;
  return endpoint;
}

bool is_wildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

bool collide(const Endpoint& a, const Endpoint& b) {
  if (a.port != b.port) return false;
  const auto plain = [](const std::string& host) { return host == "localhost" ? "127.0.0.1" : host; };
  const auto covers = [](const std::string& all, const std::string& one) {
    const bool ipv6 = one.find(':') != std::string::npos;
    return all == "::" || (all == "0.0.0.0" && !ipv6);  // :: is also of IPv4
  };
  return plain(a.host) == plain(b.host) || covers(a.host, b.host) || covers(b.host, a.host);
}

}  // namespace troika::config
