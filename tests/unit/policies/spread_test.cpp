// Every load of up to four targets and every turn: who gets the next request.
#include "policies/spread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace troika::policies {
namespace {

using Loads = std::vector<std::uint32_t>;

std::vector<Loads> all_loads(std::size_t targets, std::uint32_t most) {
  std::vector<Loads> all{{}};
  for (std::size_t i = 0; i < targets; ++i) {
    std::vector<Loads> longer;
    for (const Loads& loads : all)
      for (std::uint32_t load = 0; load <= most; ++load) {
        longer.push_back(loads);
        longer.back().push_back(load);
      }
    all = std::move(longer);
  }
  return all;
}

TEST(Spread, StandbyKeepsTheLeadersOrderWhateverTheLoad) {
  for (std::size_t targets = 0; targets <= 4; ++targets)
    for (const Loads& loads : all_loads(targets, 2)) {
      const auto order = order_of_targets(loads, false, loads.size() + 3);
      for (std::size_t i = 0; i < targets; ++i)
        EXPECT_EQ(order.at(i), i);
      EXPECT_EQ(order.size(), targets);
    }
}

TEST(Spread, ActiveActiveTriesEveryTargetOnceFewestInFlightFirst) {
  for (std::size_t targets = 0; targets <= 4; ++targets)
    for (const Loads& loads : all_loads(targets, 3))
      for (std::uint64_t turn = 0; turn < 5; ++turn) {
        const auto order = order_of_targets(loads, true, turn);
        EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), targets);
        EXPECT_EQ(order.size(), targets);
        EXPECT_TRUE(std::is_sorted(order.begin(), order.end(),
                                   [&](std::size_t a, std::size_t b) { return loads[a] < loads[b]; }));
      }
}

TEST(Spread, IdleTargetsTakeTurns) {
  for (std::size_t targets = 1; targets <= 4; ++targets) {
    const Loads idle(targets, 0);
    for (std::uint64_t turn = 0; turn < 12; ++turn)
      EXPECT_EQ(order_of_targets(idle, true, turn).front(), turn % targets);
  }
  EXPECT_EQ(order_of_targets(Loads{0, 0}, true, UINT64_MAX).front(), 1u);
}

// Requests that never end: no target is ever ahead by more than one.
TEST(Spread, LongRequestsAreSharedEvenly) {
  Loads loads(3, 0);
  for (std::uint64_t turn = 0; turn < 100; ++turn) {
    ++loads[order_of_targets(loads, true, turn).front()];
    const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
    EXPECT_LE(*most - *least, 1u);
  }
}

}  // namespace
}  // namespace troika::policies
