// Reading an answer of an engine as server-sent events: is it whole? Pure. Modes 81, 82; cases E01-E08.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary/units.hpp"

namespace troika::policies {

enum class StreamVerdict {
  Complete,        // finish_reason and [DONE]
  CompleteNoDone,  // finish_reason, then the end without [DONE]: good, worth a warning
  Truncated,       // the end before any finish_reason, or within an event
  EngineError,     // an error object in the stream: a failure even if [DONE] follows
};

// Follows one stream. Feed every byte in order; ask for the verdict at its end. Lines starting with ':' are
// comments. An event larger than kMaxEvent counts as Truncated from then on: nothing grows without limit.
//
// What is read of an event's JSON: a top-level "error" that is not null (or "object":"error", or the event
// type "error"); of each choice its index, a finish_reason that is a string, and whether it carries text
// (content, reasoning_content, reasoning, tool calls, or a completion's text); usage.completion_tokens. With
// several choices each one seen needs its finish_reason. finish_reason "error" and "abort" are the engine's
// word that it failed. The last event may lack its blank line or line end: if its JSON is whole it was not
// cut.
class StreamReader {
 public:
  static constexpr std::size_t kMaxEvent = 1u << 20;
  static constexpr std::size_t kMaxChoices = 128;
  static constexpr int kMaxDepth = 64;  // of an event's JSON; a deeper one is not read

  void feed(std::string_view bytes);
  bool done() const;      // [DONE] was read
  bool finished() const;  // every choice seen has its finish_reason
  std::uint64_t events() const;
  std::uint64_t text_chunks() const { return text_chunks_; }  // that carried text; a role alone is none
  Tokens completion_tokens() const;  // of the usage chunk, else the number of chunks with text
  StreamVerdict verdict_at_end() const;

 private:
  void take_byte(char c);
  void line(std::string_view text);
  void dispatch();
  bool read_json();  // false: not whole JSON

  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool error_event_ = false;
  std::uint64_t events_ = 0;
  std::uint64_t text_chunks_ = 0;
  std::uint64_t usage_tokens_ = 0;
  std::vector<std::uint32_t> open_choices_;      // seen, without finish_reason
  std::vector<std::uint32_t> finished_choices_;  // with one
  bool done_ = false;
  bool error_ = false;
  bool overflow_ = false;
  bool after_carriage_return_ = false;
  bool at_start_ = true;
};

}  // namespace troika::policies
