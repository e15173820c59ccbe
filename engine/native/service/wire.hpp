// Frames between stages: a length, a kind, a payload; little-endian. Every count is checked against a limit
// before anything is reserved for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/native/step.hpp"
#include "vocabulary/result.hpp"

namespace troika::native {

// Agreed on in the handshake; frames beyond them are a fault of the peer.
struct WireLimits {
  std::uint32_t hidden = 0;
  std::uint32_t rows = 0;       // token rows of a step
  std::uint32_t sequences = 0;  // at a time
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;  // positions of a sequence
  std::uint32_t ranks = 0;
};

enum class FrameKind : std::uint8_t { Step = 1, Tokens = 2, Survey = 3 };

inline constexpr std::size_t kFrameHeader = 5;  // u32 payload bytes, u8 kind

struct FrameHeader {
  std::uint32_t bytes = 0;
  FrameKind kind{};
};

// Passed once around the ring before the first step: what every rank has.
struct Survey {
  std::uint64_t kv_tokens = 0;              // the least of all so far
  std::vector<std::uint32_t> layer_counts;  // of the ranks so far

  bool operator==(const Survey&) const = default;
};

// Error: an unknown kind, or longer than any frame of the kind may be.
Result<FrameHeader> parse_frame_header(std::string_view bytes, const WireLimits& limits);

// Whole frames, header included. step.tokens is not sent.
std::string encode(const Step& step);
std::string encode(const StepTokens& tokens);
std::string encode(const Survey& survey);

// Payloads. Error: sizes or values outside the limits.
Result<Step> decode_step(std::string_view payload, const WireLimits& limits);
Result<StepTokens> decode_tokens(std::string_view payload, const WireLimits& limits);
Result<Survey> decode_survey(std::string_view payload, const WireLimits& limits);

}  // namespace troika::native
