// From logits to a token: greedy, or by temperature and top-p with a stated seed.
#pragma once

#include <cstdint>
#include <span>

#include "engine/tokenizer/bpe.hpp"

namespace troika::native {

struct Sampling {
  float temperature = 0;  // 0: greedy
  float top_p = 1;        // (0, 1]
  std::uint64_t seed = 0;

  bool operator==(const Sampling&) const = default;
};

// The token at `position` of a sequence. A function of its arguments alone: the same seed gives the same
// tokens in any batch and partition. Ties go to the lower id.
tokenizer::TokenId sample(std::span<const float> logits, const Sampling& sampling, std::uint64_t position);

}  // namespace troika::native
