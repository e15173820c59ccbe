#include "engine/native/routing.hpp"

#include <gtest/gtest.h>

namespace troika::native {
namespace {

ModelConfig config(std::uint32_t experts, std::uint32_t groups, std::uint32_t topk_groups, std::uint32_t k) {
  ModelConfig c;
  c.experts = experts;
  c.groups = groups;
  c.topk_groups = topk_groups;
  c.experts_per_token = k;
  c.routed_scaling = 2;
  return c;
}

TEST(Routing, BestExpertOfALosingGroupIsNotTaken) {
  // Group 0 holds the single best expert, group 1 the better pair.
  const std::vector<float> scores{0.9F, 0.1F, 0.6F, 0.6F};
  const std::vector<float> bias(4, 0.0F);
  std::vector<Choice> out;
  choose_experts(config(4, 2, 1, 2), scores, bias, out);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].expert, 2U);
  EXPECT_EQ(out[1].expert, 3U);
  EXPECT_FLOAT_EQ(out[0].weight, 1.0F);  // half of the sum, scaled by two
}

TEST(Routing, BiasChoosesButDoesNotWeigh) {
  const std::vector<float> scores{0.5F, 0.2F, 0.1F, 0.1F};
  const std::vector<float> bias{0.0F, 0.0F, 0.0F, 1.0F};
  std::vector<Choice> out;
  auto c = config(4, 1, 1, 1);
  choose_experts(c, scores, bias, out);
  EXPECT_EQ(out[0].expert, 3U);
  EXPECT_FLOAT_EQ(out[0].weight, 0.2F);  // one expert a token: not normalised
  c.experts_per_token = 2;
  c.normalise_topk = false;
  choose_experts(c, scores, bias, out);
  EXPECT_EQ(out[1].expert, 0U);
  EXPECT_FLOAT_EQ(out[1].weight, 1.0F);
}

TEST(Routing, TiesGoToTheLowerNumberAndNegativeScoresDoNotLetOutsidersIn) {
  const std::vector<float> scores(4, 0.5F);
  std::vector<Choice> out;
  choose_experts(config(4, 2, 1, 2), scores, std::vector<float>(4, -3.0F), out);
  EXPECT_EQ(out[0].expert, 0U);
  EXPECT_EQ(out[1].expert, 1U);
}

}  // namespace
}  // namespace troika::native
