// The simulation's time: what happens next, in order of time, then of scheduling.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "vocabulary/units.hpp"

namespace troika::sim {

using Happening = std::function<void()>;

class Events {
 public:
  Instant now() const { return now_; }

  void after(Duration delay, Happening what) { at(now_ + delay, std::move(what)); }
  void at(Instant when, Happening what) {
    heap_.push_back({std::max(when, now_), next_++, std::move(what)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  // Runs what is due next; false: nothing is due until `end`.
  bool run_one(Instant end) {
    if (heap_.empty() || heap_.front().when > end) {
      now_ = std::max(now_, end);
      return false;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    now_ = entry.when;
    entry.what();
    return true;
  }

 private:
  struct Entry {
    Instant when;
    std::uint64_t order;
    Happening what;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }

  Instant now_{};
  std::uint64_t next_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace troika::sim
