// A time limit on an operation of a coroutine: when it passes, `expire` is called once (it cancels a socket),
// unless the object is gone before.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "vocabulary/units.hpp"

namespace troika::platform {

class Deadline {
 public:
  template <class Expire>
  Deadline(const boost::asio::any_io_executor& executor, Duration limit, Expire expire)
      : state_(std::make_shared<State>()), timer_(executor, limit) {
    // The handler may already be queued when the timer is cancelled, so that it asks the state, not the error
    // alone.
    timer_.async_wait([state = state_, expire = std::move(expire)](boost::system::error_code error) mutable {
      if (error || !state->armed) return;
      state->expired = true;
      expire();
    });
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline() { state_->armed = false; }

  bool expired() const { return state_->expired; }

 private:
  struct State {
    bool armed = true;
    bool expired = false;
  };
  std::shared_ptr<State> state_;
  boost::asio::steady_timer timer_;
};

}  // namespace troika::platform
