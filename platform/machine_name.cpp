#include "platform/machine_name.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>

namespace troika::platform {
namespace {

constexpr std::size_t kLongest = 100;  // sockaddr_un holds 107

std::string fitted(const std::string& name) {
  if (name.size() <= kLongest) return name;
  const std::string hash = "#" + std::to_string(std::hash<std::string>{}(name));
  return name.substr(0, kLongest - hash.size()) + hash;
}

// Who listens there; 0: it cannot be told.
pid_t holder(const sockaddr_un& address, socklen_t size) {
  const UniqueFd asking{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!asking || ::connect(asking.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return 0;
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(asking.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return 0;
  return credentials.pid;
}

}  // namespace

Result<MachineName> MachineName::take(const std::string& name) {
  const std::string path = fitted(name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // After a first byte of zero: the abstract namespace.
  std::memcpy(address.sun_path + 1, path.data(), path.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!socket) return system_error("take the name", name, errno);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    if (errno != EADDRINUSE) return system_error("take the name", name, errno);
    const pid_t pid = holder(address, size);
    return Error{"take the name", name,
                 pid != 0 ? "held by pid " + std::to_string(pid) : std::string("held by another process")};
  }
  // Nobody is ever served: others connect only to learn who listens, each taking a place for good. When all
  // are taken, the pid is not told any more.
  if (::listen(socket.get(), SOMAXCONN) != 0) return system_error("take the name", name, errno);
  return MachineName{std::move(socket)};
}

}  // namespace troika::platform
