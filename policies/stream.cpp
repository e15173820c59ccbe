#include "policies/stream.hpp"

#include <algorithm>

#include "policies/chunk.hpp"

namespace troika::policies {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool contains(const std::vector<std::uint32_t>& in, std::uint32_t value) {
  return std::find(in.begin(), in.end(), value) != in.end();
}

}  // namespace

void StreamReader::feed(std::string_view bytes) {
  for (const char c : bytes)
    take_byte(c);
}

// A line ends with LF, CR or CRLF.
void StreamReader::take_byte(char c) {
  if (overflow_) return;
  if (c == '\n' && after_carriage_return_) {
    after_carriage_return_ = false;
    return;
  }
  after_carriage_return_ = c == '\r';
  if (c != '\n' && c != '\r') {
    line_.push_back(c);
    overflow_ = line_.size() + data_.size() > kMaxEvent;
    return;
  }
  std::string complete;
  complete.swap(line_);
  line(complete);
  complete.clear();
  line_.swap(complete);  // keeps the room that is there for the next line
}

void StreamReader::line(std::string_view text) {
  if (at_start_ && text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
    text.remove_prefix(kByteOrderMark.size());
  at_start_ = false;
  if (text.empty()) return dispatch();
  if (text.front() == ':') return;
  const std::size_t colon = text.find(':');
  const std::string_view field = text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "event") error_event_ = value == "error";
  if (field != "data") return;
  if (has_data_) data_.push_back('\n');
  has_data_ = true;
  data_.append(value);
}

void StreamReader::dispatch() {
  if (has_data_ && !done_) {
    ++events_;
    if (error_event_) error_ = true;
    if (data_ == "[DONE]")
      done_ = true;
    else
      read_json();
  }
  data_.clear();
  has_data_ = false;
  error_event_ = false;
}

bool StreamReader::read_json() {
  const auto chunk = read_chunk(data_, kMaxDepth, kMaxChoices);
  if (!chunk.has_value()) return false;
  if (chunk->error) error_ = true;
  if (chunk->text) ++text_chunks_;
  if (chunk->completion_tokens.has_value()) usage_tokens_ = *chunk->completion_tokens;
  for (const ChunkChoice& choice : chunk->choices) {
    if (choice.failed) error_ = true;
    if (contains(finished_choices_, choice.index)) continue;
    if (choice.finished) {
      std::erase(open_choices_, choice.index);
      if (finished_choices_.size() < kMaxChoices) finished_choices_.push_back(choice.index);
    } else if (!contains(open_choices_, choice.index) && open_choices_.size() < kMaxChoices) {
      open_choices_.push_back(choice.index);
    }
  }
  return true;
}

bool StreamReader::done() const {
  return done_;
}

bool StreamReader::finished() const {
  return !finished_choices_.empty() && open_choices_.empty();
}

std::uint64_t StreamReader::events() const {
  return events_;
}

Tokens StreamReader::completion_tokens() const {
  return Tokens{usage_tokens_ != 0 ? usage_tokens_ : text_chunks_};
}

StreamVerdict StreamReader::verdict_at_end() const {
  if (error_) return StreamVerdict::EngineError;
  if (overflow_) return StreamVerdict::Truncated;
  if (done_) return finished() ? StreamVerdict::Complete : StreamVerdict::Truncated;
  StreamReader end = *this;  // what stands there is the last event if it is whole
  if (!end.line_.empty()) {
    const std::string rest = end.line_;
    end.line(rest);
  }
  if (end.has_data_) {
    if (end.data_ == "[DONE]")
      end.done_ = true;
    else if (!end.read_json())
      return StreamVerdict::Truncated;
  }
  if (end.error_ || (end.has_data_ && end.error_event_)) return StreamVerdict::EngineError;
  if (!end.finished()) return StreamVerdict::Truncated;
  return end.done_ ? StreamVerdict::Complete : StreamVerdict::CompleteNoDone;
}

}  // namespace troika::policies
