// The simulation's own randomness: the same seed gives the same run on every machine and compiler.
#pragma once

#include <cstdint>

#include "vocabulary/units.hpp"

namespace troika::sim {

// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, every seed is good.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t bound) {
    return next() % bound;
  }  // bound > 0; the bias does not matter here
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < p; }
  Duration between(Duration least, Duration most) {
    return least + Duration{static_cast<Duration::rep>(
                       below(static_cast<std::uint64_t>((most - least).count()) + 1))};
  }

 private:
  std::uint64_t state_;
};

}  // namespace troika::sim
