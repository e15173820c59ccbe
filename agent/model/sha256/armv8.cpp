#include "agent/model/sha256/compress.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

// The file is compiled for ARMv8 with its cryptography extension; only what stands behind armv8_compression()
// uses it.
#define TROIKA_ARMV8 __attribute__((always_inline)) inline

namespace troika::model {
namespace {

struct Lane {
  uint32x4_t abcd, efgh;
  uint32x4_t words[4];  // the last sixteen of the message schedule
};

template <int step>
TROIKA_ARMV8 void four_rounds(Lane& lane, const unsigned char* block) {
  uint32x4_t* const w = lane.words;
  if constexpr (step < 4) {
    w[step] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * step)));
  } else {
    uint32x4_t& oldest = w[step % 4];
    oldest =
        vsha256su1q_u32(vsha256su0q_u32(oldest, w[(step + 1) % 4]), w[(step + 2) % 4], w[(step + 3) % 4]);
  }
  const uint32x4_t added = vaddq_u32(w[step % 4], vld1q_u32(kSha256Constants + 4 * step));
  const uint32x4_t before = lane.abcd;
  lane.abcd = vsha256hq_u32(before, lane.efgh, added);
  lane.efgh = vsha256h2q_u32(lane.efgh, before, added);
}

template <int lanes, int step = 0>
TROIKA_ARMV8 void all_rounds(Lane* lane, const unsigned char* const* block) {
  if constexpr (step < 16) {
    four_rounds<step>(lane[0], block[0]);
    if constexpr (lanes == 2) four_rounds<step>(lane[1], block[1]);
    all_rounds<lanes, step + 1>(lane, block);
  }
}

template <int lanes>
TROIKA_ARMV8 void compress(std::uint32_t* const* states, const unsigned char* const* data,
                           std::size_t blocks) {
  Lane lane[lanes];
  const unsigned char* at[lanes];
  for (int i = 0; i < lanes; ++i) {
    lane[i].abcd = vld1q_u32(states[i]);
    lane[i].efgh = vld1q_u32(states[i] + 4);
    at[i] = data[i];
  }
  for (; blocks > 0; --blocks) {
    uint32x4_t abcd[lanes], efgh[lanes];
    for (int i = 0; i < lanes; ++i) {
      abcd[i] = lane[i].abcd;
      efgh[i] = lane[i].efgh;
    }
    all_rounds<lanes>(lane, at);
    for (int i = 0; i < lanes; ++i) {
      lane[i].abcd = vaddq_u32(lane[i].abcd, abcd[i]);
      lane[i].efgh = vaddq_u32(lane[i].efgh, efgh[i]);
      at[i] += 64;
    }
  }
  for (int i = 0; i < lanes; ++i) {
    vst1q_u32(states[i], lane[i].abcd);
    vst1q_u32(states[i] + 4, lane[i].efgh);
  }
}

void one(std::uint32_t* state, const unsigned char* data, std::size_t blocks) {
  compress<1>(&state, &data, blocks);
}

void two(std::uint32_t* a, const unsigned char* a_data, std::uint32_t* b, const unsigned char* b_data,
         std::size_t blocks) {
  std::uint32_t* const states[] = {a, b};
  const unsigned char* const data[] = {a_data, b_data};
  compress<2>(states, data, blocks);
}

}  // namespace

const Compression* armv8_compression() {
  static constexpr Compression kCompression{one, two};
  static const bool there = (::getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
  return there ? &kCompression : nullptr;
}

}  // namespace troika::model

#else

namespace troika::model {
const Compression* armv8_compression() {
  return nullptr;
}
}  // namespace troika::model

#endif
