#include "platform/quiet_line.hpp"

#include "platform/log.hpp"

namespace troika::platform {

void QuietLine::say(std::string text) {
  if (open_) {
    ++left_out_;
    last_ = std::move(text);
    return;
  }
  log(text);
  open_ = true;
  wait();
}

void QuietLine::stop() {
  settle();
  open_ = false;
  timer_.cancel();
}

void QuietLine::wait() {
  timer_.expires_after(window_);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || self == nullptr || !self->open_) return;
    // While the flood lasts the next window follows at once, so that it stays at one line a window.
    const bool again = self->left_out_ > 0;
    self->settle();
    if (again)
      self->wait();
    else
      self->open_ = false;
  });
}

void QuietLine::settle() {
  if (left_out_ > 0) log("... and " + std::to_string(left_out_) + " more like it, the last: " + last_);
  left_out_ = 0;
  last_.clear();
}

}  // namespace troika::platform
