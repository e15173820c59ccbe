#include "kernels/cpu/crew.hpp"

namespace troika::kernels {

Crew::Crew(std::size_t threads) : threads_(threads == 0 ? 1 : threads) {
  for (std::size_t index = 1; index < threads_; ++index) {
    others_.emplace_back([this, index] { follow(index); });
  }
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  start_.notify_all();
  for (auto& other : others_)
    other.join();
}

void Crew::work(std::size_t index, std::size_t n,
                const std::function<void(std::size_t, std::size_t)>& part) const {
  const std::size_t begin = n * index / threads_;
  const std::size_t end = n * (index + 1) / threads_;
  if (begin < end) part(begin, end);
}

void Crew::each(std::size_t n, const std::function<void(std::size_t, std::size_t)>& part) {
  if (threads_ == 1) {
    if (n > 0) part(0, n);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    n_ = n;
    part_ = &part;
    left_ = threads_ - 1;
    ++round_;
  }
  start_.notify_all();
  work(0, n, part);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return left_ == 0; });
}

void Crew::follow(std::size_t index) {
  std::size_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    start_.wait(lock, [&] { return ending_ || round_ != seen; });
    if (ending_) return;
    seen = round_;
    const auto n = n_;
    const auto* part = part_;
    lock.unlock();
    work(index, n, *part);
    lock.lock();
    if (--left_ == 0) done_.notify_one();
  }
}

}  // namespace troika::kernels
