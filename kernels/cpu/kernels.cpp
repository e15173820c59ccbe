#include "kernels/cpu/kernels.hpp"

#include <bit>

#include "kernels/cpu/variants.hpp"

namespace troika::kernels {

float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<Bf16>((bits >> 16) | 0x40U);
  const std::uint32_t round = 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<Bf16>((bits + round) >> 16);
}

bool runs_here(Variant variant) {
  switch (variant) {
    case Variant::Portable:
      return true;
    case Variant::Avx2:
#if defined(__x86_64__)
      return __builtin_cpu_supports("avx2") != 0;
#else
      return false;
#endif
  }
  return false;
}

const Table& table(Variant variant) {
#if defined(__x86_64__)
  if (variant == Variant::Avx2 && runs_here(variant)) return avx2::kTable;
#else
  (void)variant;
#endif
  return portable::kTable;
}

const Table& table() {
  static const Table& best = table(Variant::Avx2);
  return best;
}

}  // namespace troika::kernels
