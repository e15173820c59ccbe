// Cuts a stream of server-sent events at its blank lines, so that only whole events reach a client: a ping or
// an error event put in between can then never land within one. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troika::daemon::gateway {

class EventSplitter {
 public:
  // An event larger than this is not waited for to its end (policies::StreamReader::kMaxEvent counts it as
  // cut).
  static constexpr std::size_t kMaxEvent = 1u << 20;

  void feed(std::string_view bytes) { rest_ += bytes; }
  // The next whole event, with the blank line that ends it; empty: none is there.
  std::string next();
  // What is left behind the last whole event; the splitter is empty afterwards.
  std::string take_rest();
  bool overflowed() const { return rest_.size() > kMaxEvent && scanned_ == rest_.size(); }

 private:
  std::string rest_;
  std::size_t scanned_ = 0;     // of rest_: no end of an event up to here
  std::size_t line_bytes_ = 0;  // of the line that scanned_ stands in
};

}  // namespace troika::daemon::gateway
