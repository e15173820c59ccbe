// Free TCP ports for a cluster on this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "vocabulary/result.hpp"

namespace troika::local {

// A block of neighbouring ports below the range that the system hands out by itself, reserved against other
// clusters of this machine for the life of the object (an abstract Unix socket named after the block).
class PortBlock {
 public:
  static constexpr std::uint16_t kSize = 32;
  static Result<PortBlock> reserve();
  PortBlock(PortBlock&& other) noexcept;
  PortBlock& operator=(PortBlock&&) = delete;
  ~PortBlock();

  std::uint16_t port(std::size_t index) const;  // below kSize
  // Those of the block that something still listens on or holds.
  std::vector<std::uint16_t> busy() const;

 private:
  PortBlock(std::uint16_t first, int fd) : first_(first), fd_(fd) {}
  std::uint16_t first_;
  int fd_;
};

// Nothing listens on it, on any address of this machine.
bool is_free(std::uint16_t port);

}  // namespace troika::local
