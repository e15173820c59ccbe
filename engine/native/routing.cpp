#include "engine/native/routing.hpp"

#include <limits>

namespace troika::native {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::size_t best_of(std::span<const float> values) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[best]) best = i;
  }
  return best;
}

}  // namespace

void choose_experts(const ModelConfig& config, std::span<const float> scores, std::span<const float> bias,
                    std::vector<Choice>& out) {
  const std::size_t per_group = config.experts / config.groups;
  std::vector<float> biased(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i)
    biased[i] = scores[i] + bias[i];
  std::vector<float> group_scores(config.groups);
  for (std::size_t g = 0; g < config.groups; ++g) {
    float first = kNever;
    float second = kNever;
    for (std::size_t i = g * per_group; i < (g + 1) * per_group; ++i) {
      if (biased[i] > first) {
        second = first;
        first = biased[i];
      } else if (biased[i] > second) {
        second = biased[i];
      }
    }
    group_scores[g] = first + second;
  }
  std::vector<float> allowed(biased.size(), kNever);
  for (std::uint32_t k = 0; k < config.topk_groups; ++k) {
    const auto g = best_of(group_scores);
    group_scores[g] = kNever;
    for (std::size_t i = g * per_group; i < (g + 1) * per_group; ++i)
      allowed[i] = biased[i];
  }
  out.clear();
  float sum = 0;
  for (std::uint32_t k = 0; k < config.experts_per_token; ++k) {
    const auto expert = best_of(allowed);
    allowed[expert] = kNever;
    out.push_back({static_cast<std::uint32_t>(expert), scores[expert]});
    sum += scores[expert];
  }
  for (auto& choice : out) {
    // The small constant is the published code's guard against a sum of zero.
    if (config.normalise_topk && config.experts_per_token > 1) choice.weight /= sum + 1e-20F;
    choice.weight *= config.routed_scaling;
  }
}

}  // namespace troika::native
