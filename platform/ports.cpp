#include "platform/ports.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "platform/procfs.hpp"
#include "platform/unique_fd.hpp"

namespace troika::platform {
namespace {

constexpr std::string_view kListening = "0A";
constexpr std::size_t kLongestTable = 16u << 20;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// A numeric address; size 0 for a name.
Address parse_address(const std::string& host, std::uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  const std::string numeric = host == "localhost" ? "127.0.0.1" : host;
  if (::inet_pton(AF_INET, numeric.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, numeric.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.size = sizeof *v6;
  }
  return address;
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return out;
    const std::size_t end = line.find_first_of(" \t", begin);
    out.push_back(line.substr(begin, end - begin));
    if (end == std::string_view::npos) return out;
    line.remove_prefix(end);
  }
}

// Socket inodes that listen on the port, on whatever address.
void listeners(const std::string& table, std::uint16_t port, std::set<std::string>& inodes) {
  char suffix[8];
  std::snprintf(suffix, sizeof suffix, ":%04X", static_cast<unsigned>(port));
  std::string_view rest = table;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const auto fields = words(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (fields.size() < 10 || fields[3] != kListening || fields[1].size() < 5) continue;
    if (fields[1].substr(fields[1].size() - 5) == suffix) inodes.insert(std::string(fields[9]));
  }
}

int owner_of(const std::set<std::string>& inodes) {
  const auto all = read_processes();
  if (!all.ok()) return 0;
  for (const ProcessStat& process : *all) {
    const std::string path = "/proc/" + std::to_string(process.id.pid) + "/fd";
    const std::unique_ptr<DIR, int (*)(DIR*)> directory{::opendir(path.c_str()), ::closedir};
    if (!directory) continue;
    while (const dirent* entry = ::readdir(directory.get())) {
      char target[64];
      const ssize_t size = ::readlinkat(::dirfd(directory.get()), entry->d_name, target, sizeof target);
      const std::string_view link{target, size > 0 ? static_cast<std::size_t>(size) : 0};
      if (link.substr(0, 8) != "socket:[") continue;
      if (inodes.count(std::string(link.substr(8, link.size() - 9))) != 0) return process.id.pid;
    }
  }
  return 0;
}

}  // namespace

PortState look_at_port(const std::string& host, std::uint16_t port) {
  PortState state;
  bool refused = false;
  if (Address address = parse_address(host, port); address.size != 0) {
    const UniqueFd fd{::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    // As servers do: remains of closed connections (TIME_WAIT) do not count.
    const int on = 1;
    if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
      state.reason = std::string("cannot make a socket: ") + std::strerror(errno);
      return state;
    }
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) {
      if (errno != EADDRINUSE) {
        state.reason = "cannot bind " + host + ": " + std::strerror(errno);
        return state;
      }
      refused = true;
    }
  }
  std::set<std::string> inodes;
  if (const auto v4 = read_virtual_file("/proc/net/tcp", kLongestTable); v4.ok())
    listeners(*v4, port, inodes);
  if (const auto v6 = read_virtual_file("/proc/net/tcp6", kLongestTable); v6.ok())
    listeners(*v6, port, inodes);
  // Where the address could be bound, a listener of the port on another address is no obstacle.
  const bool by_name = parse_address(host, port).size == 0;
  if (!refused && !(by_name && !inodes.empty())) {
    state.kind = PortState::Kind::Free;
    return state;
  }
  state.kind = PortState::Kind::Taken;
  state.pid = inodes.empty() ? 0 : owner_of(inodes);
  if (state.pid != 0) state.command = command_line(state.pid);
  return state;
}

}  // namespace troika::platform
