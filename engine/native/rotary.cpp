#include "engine/native/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troika::native {
namespace {

// YaRN's temperature: 1 + 0.1 m ln(s).
double magnitude(double factor, double weight) {
  return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

// The (fractional) pair that turns `rotations` times within the original context.
double pair_that_turns(double rotations, const Yarn& yarn, double dimensions, double theta) {
  return dimensions * std::log(yarn.original_max_position / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(theta));
}

}  // namespace

Rotary::Rotary(const ModelConfig& config) {
  const double dimensions = config.rope;
  const std::uint32_t pairs = config.rope / 2;
  for (std::uint32_t i = 0; i < pairs; ++i)
    frequencies_.push_back(std::pow(config.rope_theta, -2.0 * i / dimensions));
  double scale = 1.0 / std::sqrt(static_cast<double>(config.q_head()));
  if (config.yarn) {
    const auto& yarn = *config.yarn;
    // Fast pairs keep their frequency, slow ones are interpolated, a ramp between.
    const double low =
        std::max(std::floor(pair_that_turns(yarn.beta_fast, yarn, dimensions, config.rope_theta)), 0.0);
    double high = std::min(std::ceil(pair_that_turns(yarn.beta_slow, yarn, dimensions, config.rope_theta)),
                           dimensions - 1);
    if (high == low) high += 0.001;
    for (std::uint32_t i = 0; i < pairs; ++i) {
      const double interpolated = std::clamp((i - low) / (high - low), 0.0, 1.0);
      frequencies_[i] *= interpolated / yarn.factor + (1 - interpolated);
    }
    magnitude_ = magnitude(yarn.factor, yarn.mscale) / magnitude(yarn.factor, yarn.mscale_all_dim);
    if (yarn.mscale_all_dim != 0) {
      const double m = magnitude(yarn.factor, yarn.mscale_all_dim);
      scale *= m * m;
    }
  }
  softmax_scale_ = static_cast<float>(scale);
}

void Rotary::turn(std::uint32_t position, float* out) const {
  for (std::size_t i = 0; i < frequencies_.size(); ++i) {
    const double angle = position * frequencies_[i];
    out[2 * i] = static_cast<float>(std::cos(angle) * magnitude_);
    out[2 * i + 1] = static_cast<float>(std::sin(angle) * magnitude_);
  }
}

void Rotary::apply(float* x, const float* turn) const {
  for (std::size_t i = 0; i < 2 * frequencies_.size(); i += 2) {
    const float a = x[i];
    const float b = x[i + 1];
    x[i] = a * turn[i] - b * turn[i + 1];
    x[i + 1] = b * turn[i] + a * turn[i + 1];
  }
}

}  // namespace troika::native
