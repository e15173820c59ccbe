// Rotary position embedding with YaRN (Peng et al. 2023), as DeepSeek V3 uses it.
#pragma once

#include <vector>

#include "engine/native/config.hpp"

namespace troika::native {

// Angles and scales for one model.
class Rotary {
 public:
  explicit Rotary(const ModelConfig& config);

  // The turn of each pair at `position`: rope floats, cosine and sine of one pair after the other.
  void turn(std::uint32_t position, float* out) const;
  // Rotates the pairs (x[2i], x[2i+1]), rope floats in all, by what turn() gave.
  void apply(float* x, const float* turn) const;

  // Factor on query-key products before the softmax.
  float softmax_scale() const { return softmax_scale_; }
  // Radians a position for each pair.
  const std::vector<double>& frequencies() const { return frequencies_; }

 private:
  std::vector<double> frequencies_;
  double magnitude_ = 1;
  float softmax_scale_ = 1;
};

}  // namespace troika::native
