// What happened in a run: a hash of all of it, and the last of it in words.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>

#include "vocabulary/units.hpp"

namespace troika::sim {

class Trace {
 public:
  static constexpr std::size_t kKept = 400;

  struct Entry {
    Instant at;
    const char* what;
    std::int64_t a, b, c;
  };

  void add(Instant at, const char* what, std::int64_t a = 0, std::int64_t b = 0, std::int64_t c = 0) {
    for (const char* p = what; *p != '\0'; ++p)
      mix(static_cast<std::uint64_t>(*p));
    mix(static_cast<std::uint64_t>(at.time_since_epoch().count()));
    mix(static_cast<std::uint64_t>(a));
    mix(static_cast<std::uint64_t>(b));
    mix(static_cast<std::uint64_t>(c));
    last_.push_back({at, what, a, b, c});
    if (last_.size() > kKept) last_.pop_front();
  }

  std::uint64_t hash() const { return hash_; }

  void print() const {
    for (const Entry& e : last_)
      std::printf("  %9.3f s  %-34s %lld %lld %lld\n",
                  static_cast<double>(e.at.time_since_epoch().count()) * 1e-9, e.what,
                  static_cast<long long>(e.a), static_cast<long long>(e.b), static_cast<long long>(e.c));
  }

 private:
  void mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001B3ull; }  // FNV-1a, a word a step

  std::uint64_t hash_ = 0xCBF29CE484222325ull;
  std::deque<Entry> last_;
};

}  // namespace troika::sim
