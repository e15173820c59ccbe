// Strong types for the quantities that must not be mixed up.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace troika {

// A number with a meaning. Distinct tags do not convert into one another.
template <class Tag, class Rep = std::uint64_t>
struct Quantity {
  Rep count{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : count(value) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { return count += other.count, *this; }
  constexpr Quantity& operator-=(Quantity other) { return count -= other.count, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
};

using Bytes = Quantity<struct BytesTag>;
using Tokens = Quantity<struct TokensTag>;
// The number of one start of a replica; 0 means none yet. Written down before it is used, never reused.
using Epoch = Quantity<struct EpochTag>;
// The number of one leadership; 0 means none yet.
using Term = Quantity<struct TermTag>;
// Position of a stage in the pipeline, from 0.
using Rank = Quantity<struct RankTag, std::uint32_t>;

constexpr Epoch next(Epoch epoch) {
  return Epoch{epoch.count + 1};
}
constexpr Term next(Term term) {
  return Term{term.count + 1};
}

using Duration = std::chrono::nanoseconds;

// Time since boot, suspended time included (CLOCK_BOOTTIME): for deadlines, rates and leases. This type
// cannot read the clock; platform/clock does.
struct BootClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
};
using Instant = BootClock::time_point;

// Wall clock, for people and records only.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

}  // namespace troika
