// Reading an answer of an engine as server-sent events: is it whole? Pure. Modes 81, 82; cases E01-E08.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "vocabulary/units.hpp"

namespace troika::policies {

enum class StreamVerdict {
  Complete,        // finish_reason and [DONE]
  CompleteNoDone,  // finish_reason, then the end without [DONE]: good, worth a warning
  Truncated,       // the end before any finish_reason, or within an event
  EngineError,     // an error object in the stream: a failure even if [DONE] follows
};

// Follows one stream. Feed every byte in order; ask for the verdict at its end. Lines starting with ':' are comments.
// An event larger than kMaxEvent counts as Truncated from then on: nothing grows without limit.
class StreamReader {
 public:
  static constexpr std::size_t kMaxEvent = 1u << 20;

  void feed(std::string_view bytes);
  bool done() const;  // [DONE] was read
  bool finished() const;  // a finish_reason was read
  std::uint64_t events() const;
  Tokens completion_tokens() const;  // of the usage chunk, else the number of chunks with text
  StreamVerdict verdict_at_end() const;

 private:
  void line(std::string_view text);
  void dispatch();

  std::string line_;
  std::string data_;
  std::uint64_t events_ = 0;
  std::uint64_t text_chunks_ = 0;
  std::uint64_t usage_tokens_ = 0;
  bool done_ = false;
  bool finished_ = false;
  bool error_ = false;
  bool overflow_ = false;
  bool after_carriage_return_ = false;
};

}  // namespace troika::policies
