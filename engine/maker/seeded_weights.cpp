#include "engine/maker/seeded_weights.hpp"

namespace troika::maker {

SeededValues::SeededValues(std::uint64_t seed, std::string_view tensor) : state_(0xcbf29ce484222325U) {
  const auto take = [&](std::uint8_t byte) { state_ = (state_ ^ byte) * 0x100000001b3U; };  // FNV-1a
  for (unsigned shift = 0; shift < 64; shift += 8)
    take(static_cast<std::uint8_t>(seed >> shift));
  for (const char c : tensor)
    take(static_cast<std::uint8_t>(c));
}

float SeededValues::next() {
  state_ += 0x9e3779b97f4a7c15U;  // SplitMix64
  std::uint64_t x = state_;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  x ^= x >> 31U;
  const auto bits = static_cast<std::int32_t>(x >> 40U);  // 24 bits: exact in a float
  return static_cast<float>(bits - (1 << 23)) * 0x1.0p-23F;
}

std::vector<kernels::Bf16> seeded_bf16(SeededValues values, std::size_t count, float deviation, float mean) {
  const float reach = deviation * 1.7320508F;  // a uniform value of deviation 1 reaches sqrt(3)
  std::vector<kernels::Bf16> out(count);
  for (auto& value : out) {
    const float scaled = values.next() * reach;
    value = kernels::to_bf16(mean + scaled);
  }
  return out;
}

}  // namespace troika::maker
