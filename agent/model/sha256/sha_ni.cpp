#include "agent/model/sha256/compress.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define TROIKA_SHA_NI __attribute__((target("sha,sse4.1"), always_inline)) inline

namespace troika::model {
namespace {

// The instructions want the state as the words A, B, E, F and C, D, G, H, the first named highest.
struct Lane {
  __m128i abef, cdgh;
  __m128i words[4];  // of the message schedule; those to come are begun
};

TROIKA_SHA_NI Lane load(const std::uint32_t* state) {
  const __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state));
  const __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4));
  Lane lane;
  // unpacklo/hi of 64-bit halves after the words are put in order.
  const __m128i abcd = _mm_shuffle_epi32(dcba, 0x1B);
  const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1B);
  lane.abef = _mm_unpackhi_epi64(efgh, abcd);
  lane.cdgh = _mm_unpacklo_epi64(efgh, abcd);
  return lane;
}

TROIKA_SHA_NI void store(const Lane& lane, std::uint32_t* state) {
  const __m128i abcd = _mm_unpackhi_epi64(lane.cdgh, lane.abef);
  const __m128i efgh = _mm_unpacklo_epi64(lane.cdgh, lane.abef);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_shuffle_epi32(abcd, 0x1B));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_shuffle_epi32(efgh, 0x1B));
}

// Step n of 16 has the words 4n to 4n+3 in words[n % 4]: the first four steps load theirs, the others' are
// made by the step before each, and were begun two steps earlier than that.
template <int step>
TROIKA_SHA_NI void schedule(Lane& lane, const unsigned char* block) {
  __m128i* const w = lane.words;
  __m128i& now = w[step % 4];
  __m128i& before = w[(step + 3) % 4];
  if constexpr (step < 4) {
    const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    now = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + step), big_endian);
  }
  if constexpr (step >= 3 && step < 15) {
    __m128i& next = w[(step + 1) % 4];
    next = _mm_sha256msg2_epu32(_mm_add_epi32(next, _mm_alignr_epi8(now, before, 4)), now);
  }
  if constexpr (step >= 1 && step < 13) before = _mm_sha256msg1_epu32(before, now);
}

// Two rounds; the words of the two that follow.
template <int step>
TROIKA_SHA_NI __m128i first_rounds(Lane& lane) {
  const __m128i constants = _mm_load_si128(reinterpret_cast<const __m128i*>(kSha256Constants) + step);
  const __m128i added = _mm_add_epi32(lane.words[step % 4], constants);
  lane.cdgh = _mm_sha256rnds2_epu32(lane.cdgh, lane.abef, added);
  return _mm_shuffle_epi32(added, 0x0E);
}

TROIKA_SHA_NI void last_rounds(Lane& lane, __m128i added) {
  lane.abef = _mm_sha256rnds2_epu32(lane.abef, lane.cdgh, added);
}

// In this order, the second lane's words between the first one's rounds, the rounds hold each other up least:
// 10 % faster on Golden Cove than a lane's four rounds in one piece, 3 % below what its unit for rounds can
// do.
template <int lanes, int step = 0>
TROIKA_SHA_NI void all_rounds(Lane* lane, const unsigned char* const* block) {
  if constexpr (step < 16) {
    schedule<step>(lane[0], block[0]);
    const __m128i added = first_rounds<step>(lane[0]);
    if constexpr (lanes == 2) schedule<step>(lane[1], block[1]);
    last_rounds(lane[0], added);
    if constexpr (lanes == 2) last_rounds(lane[1], first_rounds<step>(lane[1]));
    all_rounds<lanes, step + 1>(lane, block);
  }
}

template <int lanes>
TROIKA_SHA_NI void compress(std::uint32_t* const* states, const unsigned char* const* data,
                            std::size_t blocks) {
  Lane lane[lanes];
  const unsigned char* at[lanes];
  for (int i = 0; i < lanes; ++i) {
    lane[i] = load(states[i]);
    at[i] = data[i];
  }
  for (; blocks > 0; --blocks) {
    __m128i abef[lanes], cdgh[lanes];
    for (int i = 0; i < lanes; ++i) {
      abef[i] = lane[i].abef;
      cdgh[i] = lane[i].cdgh;
    }
    all_rounds<lanes>(lane, at);
    for (int i = 0; i < lanes; ++i) {
      lane[i].abef = _mm_add_epi32(lane[i].abef, abef[i]);
      lane[i].cdgh = _mm_add_epi32(lane[i].cdgh, cdgh[i]);
      at[i] += 64;
    }
  }
  for (int i = 0; i < lanes; ++i)
    store(lane[i], states[i]);
}

__attribute__((target("sha,sse4.1"))) void one(std::uint32_t* state, const unsigned char* data,
                                               std::size_t blocks) {
  compress<1>(&state, &data, blocks);
}

__attribute__((target("sha,sse4.1"))) void two(std::uint32_t* a, const unsigned char* a_data,
                                               std::uint32_t* b, const unsigned char* b_data,
                                               std::size_t blocks) {
  std::uint32_t* const states[] = {a, b};
  const unsigned char* const data[] = {a_data, b_data};
  compress<2>(states, data, blocks);
}

bool has_sha_ni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

}  // namespace

const Compression* sha_ni_compression() {
  static constexpr Compression kCompression{one, two};
  static const bool there = has_sha_ni();
  return there ? &kCompression : nullptr;
}

}  // namespace troika::model

#else

namespace troika::model {
const Compression* sha_ni_compression() {
  return nullptr;
}
}  // namespace troika::model

#endif
