#include "engine/native/sampler.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace troika::native {
namespace {

const std::vector<float> kLogits{1.0F, 3.0F, 2.0F, 3.0F, -5.0F};

TEST(Sampler, GreedyTakesTheFirstOfTheBest) {
  EXPECT_EQ(sample(kLogits, {0, 1, 9}, 4), 1U);
}

TEST(Sampler, TheSameSeedAndPositionGiveTheSameToken) {
  for (std::uint64_t position = 0; position < 50; ++position) {
    EXPECT_EQ(sample(kLogits, {1, 1, 7}, position), sample(kLogits, {1, 1, 7}, position));
  }
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  std::map<std::uint32_t, int> counts;
  constexpr int kDraws = 20000;
  for (std::uint64_t position = 0; position < kDraws; ++position)
    ++counts[sample(kLogits, {1, 1, 42}, position)];
  // e^{1,3,2,3,-5} over their sum 50.28
  EXPECT_NEAR(counts[0] / static_cast<double>(kDraws), 0.0541, 0.01);
  EXPECT_NEAR(counts[1] / static_cast<double>(kDraws), 0.3995, 0.015);
  EXPECT_NEAR(counts[2] / static_cast<double>(kDraws), 0.1470, 0.01);
  EXPECT_NEAR(counts[3] / static_cast<double>(kDraws), 0.3995, 0.015);
}

TEST(Sampler, TopPKeepsTheNucleusOnly) {
  for (std::uint64_t position = 0; position < 500; ++position) {
    const auto token = sample(kLogits, {1, 0.7F, 5}, position);
    EXPECT_TRUE(token == 1 || token == 3);
    EXPECT_EQ(sample(kLogits, {1, 1e-6F, 5}, position), 1U);
  }
}

TEST(Sampler, SeedsAndPositionsDiffer) {
  const std::vector<float> flat(1000, 0.0F);
  int same = 0;
  for (std::uint64_t position = 0; position < 200; ++position) {
    same += sample(flat, {1, 1, 1}, position) == sample(flat, {1, 1, 2}, position) ? 1 : 0;
    same += sample(flat, {1, 1, 1}, position) == sample(flat, {1, 1, 1}, position + 1) ? 1 : 0;
  }
  EXPECT_LT(same, 10);
}

}  // namespace
}  // namespace troika::native
