// What came of one completion: the text, when each part of it came, and how it ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vocabulary/units.hpp"

namespace troika::local {

// Reads a stream of server-sent events in OpenAI's form as it arrives. Times are the caller's.
class AnswerStream {
 public:
  void feed(std::string_view bytes, Instant now);

  const std::string& text() const { return text_; }
  std::uint64_t pieces() const { return pieces_; }  // events that carried text
  std::uint64_t tokens() const { return usage_tokens_ != 0 ? usage_tokens_ : pieces_; }
  bool done() const { return done_; }  // [DONE]
  const std::string& finish_reason() const { return finish_reason_; }
  const std::string& error_code() const { return error_code_; }  // of an error event
  const std::string& error_message() const { return error_message_; }
  std::optional<Instant> first_at() const { return first_at_; }
  std::optional<Instant> last_at() const { return last_at_; }
  std::size_t events_that_are_no_json() const { return garbled_; }

 private:
  void event(const std::string& data, Instant now);

  std::string line_;
  std::string text_;
  std::uint64_t pieces_ = 0;
  std::uint64_t usage_tokens_ = 0;
  bool done_ = false;
  std::string finish_reason_;
  std::string error_code_;
  std::string error_message_;
  std::optional<Instant> first_at_;
  std::optional<Instant> last_at_;
  std::size_t garbled_ = 0;
};

// {"error":{"code":...}} of a refusal; empty where there is none.
std::string error_code_of(std::string_view body);

}  // namespace troika::local
