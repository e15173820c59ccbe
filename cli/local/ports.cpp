#include "cli/local/ports.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

namespace troika::local {
namespace {

constexpr std::uint16_t kFirst = 20000;
constexpr std::uint16_t kBlocks =
    380;  // up to 32160: below Linux's usual range for outgoing connections (32768)

// The block's name in the kernel's table of abstract sockets: free again the moment its holder ends. -1:
// taken.
int hold(std::uint16_t first) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "troika-ports-" + std::to_string(first);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

bool is_free(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  // Connections in TIME_WAIT do not make a port busy: servers set this option too.
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const bool free =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(fd, 1) == 0;
  ::close(fd);
  return free;
}

Result<PortBlock> PortBlock::reserve() {
  // From a different place for each process, so that many clusters at once do not all try the same blocks.
  const auto start = static_cast<std::uint32_t>(::getpid());
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    const auto first = static_cast<std::uint16_t>(kFirst + (start * 7 + i) % kBlocks * kSize);
    const int fd = hold(first);
    if (fd < 0) continue;
    PortBlock block(first, fd);
    if (block.busy().empty()) return block;
  }
  return Error{"find free ports on", "127.0.0.1",
               "no " + std::to_string(kSize) + " neighbouring free ports from " + std::to_string(kFirst)};
}

PortBlock::PortBlock(PortBlock&& other) noexcept : first_(other.first_), fd_(std::exchange(other.fd_, -1)) {}

PortBlock::~PortBlock() {
  if (fd_ >= 0) ::close(fd_);
}

std::uint16_t PortBlock::port(std::size_t index) const {
  TROIKA_INVARIANT(index < kSize);
  return static_cast<std::uint16_t>(first_ + index);
}

std::vector<std::uint16_t> PortBlock::busy() const {
  std::vector<std::uint16_t> out;
  for (std::size_t i = 0; i < kSize; ++i)
    if (!is_free(port(i))) out.push_back(port(i));
  return out;
}

}  // namespace troika::local
