#include "daemon/gateway/event_splitter.hpp"

#include <utility>

namespace troika::daemon::gateway {

std::string EventSplitter::next() {
  // A line ends with LF, CR or CR LF. A CR at the very end waits: an LF may belong to it.
  while (scanned_ < rest_.size()) {
    const char c = rest_[scanned_];
    if (c == '\r' && scanned_ + 1 == rest_.size()) return {};
    if (c != '\n' && c != '\r') {
      ++scanned_, ++line_bytes_;
      continue;
    }
    const bool pair = c == '\r' && rest_[scanned_ + 1] == '\n';
    scanned_ += pair ? 2 : 1;
    if (std::exchange(line_bytes_, 0) > 0) continue;
    std::string event = rest_.substr(0, scanned_);
    rest_.erase(0, std::exchange(scanned_, 0));
    return event;
  }
  return {};
}

std::string EventSplitter::take_rest() {
  scanned_ = 0;
  line_bytes_ = 0;
  return std::exchange(rest_, {});
}

}  // namespace troika::daemon::gateway
