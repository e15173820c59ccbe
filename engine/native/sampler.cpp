#include "engine/native/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vocabulary/result.hpp"

namespace troika::native {
namespace {

using tokenizer::TokenId;

// SplitMix64: one well-mixed number for each (seed, position).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

double uniform(std::uint64_t seed, std::uint64_t position) {
  return static_cast<double>(mix(mix(seed) ^ position) >> 11U) * 0x1.0p-53;
}

}  // namespace

TokenId sample(std::span<const float> logits, const Sampling& sampling, std::uint64_t position) {
  TROIKA_INVARIANT(!logits.empty());
  const auto best = static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (sampling.temperature <= 0) return best;
  struct Candidate {
    double weight;
    TokenId token;
  };
  std::vector<Candidate> candidates(logits.size());
  double total = 0;
  for (TokenId token = 0; token < logits.size(); ++token) {
    const double weight =
        std::exp((static_cast<double>(logits[token]) - logits[best]) / sampling.temperature);
    candidates[token] = {weight, token};
    total += weight;
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  });
  // The nucleus: the fewest tokens whose share reaches top_p, at least one.
  std::size_t kept = 0;
  double share = 0;
  while (kept < candidates.size() && (kept == 0 || share < sampling.top_p * total))
    share += candidates[kept++].weight;
  double left = uniform(sampling.seed, position) * share;
  for (std::size_t i = 0; i < kept; ++i) {
    left -= candidates[i].weight;
    if (left < 0) return candidates[i].token;
  }
  return candidates[kept - 1].token;
}

}  // namespace troika::native
