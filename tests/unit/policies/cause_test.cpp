// Every order of every set of causes: the nearest to the origin names the failure.
#include "policies/cause.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troika::policies {
namespace {

Finding died(std::int64_t signal, bool known, bool follows) {
  return finding(Code::STAGE_DIED, "n", "a/0", "ended", {},
                 {{"signal", signal}, {"known", known}, {"follows", follows}});
}

// From the farthest to the nearest.
std::vector<Finding> ladder() {
  return {finding(Code::KILL_UNCLAIMED, "n", "a/0", "info"), died(0, true, true), died(0, true, false),
          died(9, true, true), finding(Code::NODE_LOST, "n", "n", "gone")};
}

TEST(Cause, EachStepIsNearerThanTheLast) {
  const auto steps = ladder();
  for (std::size_t i = 0; i < steps.size(); ++i)
    EXPECT_EQ(nearness(steps[i]), static_cast<int>(i)) << steps[i].message;
  EXPECT_EQ(nearness(died(0, false, false)), 3) << "its keeper was killed";
  EXPECT_EQ(nearness(finding(Code::NODE_REBOOTED, "n", "n", "")), 4);
  EXPECT_EQ(nearness(finding(Code::STAGE_DIED, "n", "a/0", "without evidence")), 2);
}

TEST(Cause, NearestFirstWhateverTheOrder) {
  std::vector<Finding> findings = ladder();
  std::sort(findings.begin(), findings.end(),
            [](const Finding& a, const Finding& b) { return a.message < b.message; });
  const auto by_nearness = [](const Finding& a, const Finding& b) { return nearness(a) < nearness(b); };
  std::vector<std::size_t> order{0, 1, 2, 3, 4};
  do {
    std::vector<Finding> mixed;
    for (const std::size_t i : order)
      mixed.push_back(findings[i]);
    nearest_first(mixed);
    EXPECT_TRUE(std::is_sorted(mixed.rbegin(), mixed.rend(), by_nearness));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Cause, EquallyNearOnesKeepTheirOrder) {
  std::vector<Finding> findings{died(9, true, false), died(12, true, false), died(15, true, false)};
  const auto before = findings;
  nearest_first(findings);
  EXPECT_EQ(findings, before);
}

}  // namespace
}  // namespace troika::policies
