// The bytes of a frame: length of the payload (4, big endian), kind (1), payload. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "platform/channel.hpp"

namespace troika::platform {

inline constexpr std::size_t kFrameHeader = 5;

// The longest payload of a kind.
std::size_t frame_limit(Frame::Kind kind);
void append_frame(std::string& out, const Frame& frame);

// Cuts frames from the bytes of a stream in the order of their arrival.
class FrameReader {
 public:
  void append(std::string_view bytes);
  // The next whole frame; none: more bytes are needed. An error is final: nothing after it can be read.
  Result<std::optional<Frame>> next();

 private:
  std::string bytes_;
  std::size_t at_ = 0;  // what lies before was read
};

}  // namespace troika::platform
