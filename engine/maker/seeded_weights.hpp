// Weights from a seed: integer arithmetic and correctly rounded float operations only, so the bytes are the
// same on every machine.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/cpu/kernels.hpp"

namespace troika::maker {

class SeededValues {
 public:
  // Each tensor has its own stream, so that tensors do not depend on one another's sizes.
  SeededValues(std::uint64_t seed, std::string_view tensor);
  // Uniform in [-1, 1).
  float next();

 private:
  std::uint64_t state_;
};

// count values, uniform with the given standard deviation around `mean`.
std::vector<kernels::Bf16> seeded_bf16(SeededValues values, std::size_t count, float deviation,
                                       float mean = 0);

}  // namespace troika::maker
