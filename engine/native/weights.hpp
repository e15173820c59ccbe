// The weights of a range of layers, read from safetensors shards.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/native/config.hpp"
#include "kernels/cpu/kernels.hpp"
#include "vocabulary/names.hpp"
#include "vocabulary/result.hpp"

namespace troika::native {

using kernels::Bf16;

using Matrix = std::vector<Bf16>;  // row-major [outputs][inputs]
using Vector = std::vector<float>;

struct FeedForward {
  Matrix gate, up;  // [intermediate][hidden]
  Matrix down;      // [hidden][intermediate]
  std::uint32_t intermediate = 0;
};

struct Layer {
  Vector input_norm, post_norm;  // [hidden]
  Matrix q;                      // [heads * q_head][hidden], without q_lora
  Matrix q_a, q_b;               // [q_lora][hidden], [heads * q_head][q_lora]
  Vector q_a_norm;               // [q_lora]
  Matrix kv_a;                   // [kv_lora + rope][hidden]
  Vector kv_a_norm;              // [kv_lora]
  Matrix kv_b;                   // [heads * (nope + v_head)][kv_lora]
  Matrix o;                      // [hidden][heads * v_head]
  FeedForward dense;             // of a dense layer, else empty
  Matrix router;                 // [experts][hidden]
  Vector router_bias;            // [experts], e_score_correction_bias
  FeedForward shared;            // n_shared_experts as one
  std::vector<FeedForward> experts;
};

struct Weights {
  LayerRange range;
  Matrix embedding;  // [vocabulary][hidden], first rank only
  std::vector<Layer> layers;
  Vector norm;  // [hidden], last rank only
  Matrix head;  // [vocabulary][hidden], last rank only
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

// Called with the bytes read so far and in all; false stops the loading.
using LoadProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// Layers [range) and, where the range touches an end of the model, the embedding or the norm and head. Opens
// only the shards that hold them. Error: a tensor is missing, or its dtype (BF16; norms and biases also F32)
// or shape is not as the config says; a shard breaks the format; "stopped" when progress said so.
Result<Weights> load_weights(const std::string& directory, const ModelConfig& config, LayerRange range,
                             const LoadProgress& progress);

}  // namespace troika::native
