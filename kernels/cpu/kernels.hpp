// The arithmetic of a transformer layer on a CPU, float32 with BF16 weights.
//
// Every output value is computed in an order that depends on the shape of its operands alone: not on how many
// rows are computed together, not on the instruction set. So the same row gives the same bits in any batch,
// chunk, partition and on any variant.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troika::kernels {

// The upper half of a float32.
using Bf16 = std::uint16_t;

float to_float(Bf16 value);
// Rounds to nearest, ties to even; NaN stays NaN.
Bf16 to_bf16(float value);

enum class Variant { Portable, Avx2 };
bool runs_here(Variant variant);

// One implementation of all kernels. Arrays are row-major; outputs do not overlap inputs unless said.
struct Table {
  // out[r * out_stride + m] = w[m] . x[r] for m < outputs: x is [rows][inputs], w is [outputs][inputs].
  void (*matmul)(float* out, std::size_t out_stride, const float* x, const Bf16* w, std::size_t rows,
                 std::size_t outputs, std::size_t inputs);
  // out[c] = sum over i of a[i] * w[i][c]: w is [rows][columns].
  void (*combine_rows)(float* out, const float* a, const Bf16* w, std::size_t rows, std::size_t columns);
  float (*dot)(const float* a, const float* b, std::size_t n);
  // out = x / sqrt(mean(x^2) + epsilon) * gain; out may be x.
  void (*rms_norm)(float* out, const float* x, const float* gain, std::size_t n, float epsilon);
  // x[i] = exp(x[i]), arguments held to [-87, 88].
  void (*exponential)(float* x, std::size_t n);
  // gate[i] = gate[i] * sigmoid(gate[i]) * up[i].
  void (*silu_multiply)(float* gate, const float* up, std::size_t n);
  // x[i] = 1 / (1 + exp(-x[i])).
  void (*sigmoid)(float* x, std::size_t n);
  // Attention of one head over the first `count` cached tokens. A page holds page_tokens entries of latent +
  // rope floats; query has latent + rope floats; out gets the softmax-weighted sum of the latents. scores:
  // room for `count`.
  void (*attend_latent)(float* out, const float* query, const float* const* pages, std::size_t page_tokens,
                        std::size_t count, std::size_t latent, std::size_t rope, float scale, float* scores);
};

const Table& table(Variant variant);
// The fastest variant that runs on this processor.
const Table& table();

}  // namespace troika::kernels
