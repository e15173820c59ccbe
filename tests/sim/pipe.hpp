// One direction of a connection: first in, first out, each message after some delay; several pipes are
// independent of one another, so what goes over different ones may arrive in any order.
#pragma once

#include <deque>
#include <memory>

#include "events.hpp"
#include "random.hpp"

namespace troika::sim {

class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  // ready(): the instant from which the receiver takes messages (later than now: a cut link or a stopped
  // process).
  // rough: whether messages may be late for seconds.
  Pipe(Events& events, Random& random, const bool& rough, std::function<Instant()> ready)
      : events_(events), random_(random), rough_(rough), ready_(std::move(ready)) {}

  void send(Happening deliver) {
    if (closed_) return;
    using namespace std::chrono_literals;
    const Duration delay =
        rough_ && random_.chance(0.05) ? random_.between(100ms, 2500ms) : random_.between(1ms, 60ms);
    queue_.push_back({std::max(events_.now() + delay, last_), std::move(deliver)});
    last_ = queue_.back().when;
    if (queue_.size() == 1) arm(queue_.front().when);
  }
  // Nothing more is delivered.
  void close() {
    closed_ = true;
    queue_.clear();
  }
  // The sender is gone: what is under way arrives, or is lost from some message on; then `ended`.
  void finish(Happening ended) {
    if (closed_) return;
    if (random_.chance(0.5) && queue_.size() > 1) queue_.resize(1 + random_.below(queue_.size()));
    send(std::move(ended));
  }

 private:
  struct Message {
    Instant when;
    Happening deliver;
  };
  void arm(Instant when) {
    events_.at(when, [self = shared_from_this()] { self->due(); });
  }
  void due() {
    if (closed_ || queue_.empty()) return;
    const Instant ready = ready_();
    if (ready > events_.now()) return arm(ready);
    Message message = std::move(queue_.front());
    queue_.pop_front();
    if (!queue_.empty()) arm(queue_.front().when);
    message.deliver();
  }

  Events& events_;
  Random& random_;
  const bool& rough_;
  std::function<Instant()> ready_;
  std::deque<Message> queue_;
  Instant last_{};
  bool closed_ = false;
};

}  // namespace troika::sim
