#include "engine/native/service/worker.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace troika::native {

namespace asio = boost::asio;

Worker::Worker(asio::io_context& io, Load load, Loaded loaded, Stepped stepped)
    : io_(io),
      load_(std::move(load)),
      loaded_(std::move(loaded)),
      stepped_(std::move(stepped)),
      thread_([this] { run(); }) {}

Worker::~Worker() {
  stop_ = true;
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }
  wake_.notify_one();
  thread_.join();
}

bool Worker::submit(Step step) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return false;
    waiting_.push_back(std::move(step));
  }
  wake_.notify_one();
  return true;
}

void Worker::run() {
  auto loading = load_(stop_);
  if (!loading.ok()) {
    asio::post(io_, [this, error = loading.error()] { loaded_(error); });
    return;
  }
  auto stage = std::move(*loading);
  asio::post(io_, [this] { loaded_(Done{}); });
  for (;;) {
    Step step;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      step = std::move(waiting_.front());
      waiting_.pop_front();
    }
    StepTokens tokens;
    auto status = stage->run(step, tokens, stop_);
    if (stop_) return;
    asio::post(io_, [this, status = std::move(status), step = std::move(step),
                     tokens = std::move(tokens)]() mutable {
      stepped_(std::move(status), std::move(step), std::move(tokens));
    });
  }
}

}  // namespace troika::native
