// Which experts a token goes to: DeepSeek V3's group-limited top-k without auxiliary loss ("noaux_tc").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/native/config.hpp"

namespace troika::native {

struct Choice {
  std::uint32_t expert = 0;
  float weight = 0;
};

// scores: sigmoid affinities, [experts]; bias: [experts], used for choosing only. Groups are ranked by the
// sum of their two best biased scores, experts within the chosen groups by the biased score; ties go to the
// lower number. The weights are the unbiased scores, made to sum to one if the config says so, times
// routed_scaling_factor.
void choose_experts(const ModelConfig& config, std::span<const float> scores, std::span<const float> bias,
                    std::vector<Choice>& out);

}  // namespace troika::native
