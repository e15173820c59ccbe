#include "platform/framing.hpp"

#include "protocol/messages.hpp"

namespace troika::platform {

std::size_t frame_limit(Frame::Kind kind) {
  switch (kind) {
    case Frame::Kind::Message:
      return protocol::kMaxMessage.count;
    case Frame::Kind::Raw:
      return protocol::kMaxRawFrame.count;
  }
  broken_invariant("frame kind", __FILE__, __LINE__);
}

void append_frame(std::string& out, const Frame& frame) {
  const auto size = static_cast<std::uint32_t>(frame.payload.size());
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>((size >> shift) & 0xFF);
  out += static_cast<char>(frame.kind);
  out += frame.payload;
}

void FrameReader::append(std::string_view bytes) {
  bytes_.erase(0, at_);
  at_ = 0;
  bytes_.append(bytes);
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(at_);
  if (rest.size() < kFrameHeader) return std::optional<Frame>{};
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size = size << 8 | static_cast<unsigned char>(rest[i]);
  const auto kind = static_cast<unsigned char>(rest[4]);
  if (kind > static_cast<unsigned char>(Frame::Kind::Raw))
    return Error{"read a frame", "", "unknown kind " + std::to_string(kind)};
  Frame frame{static_cast<Frame::Kind>(kind), {}};
  if (size > frame_limit(frame.kind))
    return Error{
        "read a frame", "",
        std::to_string(size) + " bytes, at most " + std::to_string(frame_limit(frame.kind)) + " are allowed"};
  if (rest.size() < kFrameHeader + size) return std::optional<Frame>{};
  frame.payload = rest.substr(kFrameHeader, size);
  at_ += kFrameHeader + size;
  return std::optional<Frame>{std::move(frame)};
}

}  // namespace troika::platform
