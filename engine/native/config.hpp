// What troika-stage needs to know of a model, from its config.json under Hugging Face's names.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vocabulary/result.hpp"

namespace troika::native {

// rope_scaling of type "yarn".
struct Yarn {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 1;
  double mscale_all_dim = 0;
  std::uint32_t original_max_position = 4096;
};

struct ModelConfig {
  std::uint32_t hidden = 0;             // hidden_size
  std::uint32_t layers = 0;             // num_hidden_layers
  std::uint32_t heads = 0;              // num_attention_heads
  std::uint32_t q_lora = 0;             // q_lora_rank; 0: one projection
  std::uint32_t kv_lora = 0;            // kv_lora_rank
  std::uint32_t nope = 0;               // qk_nope_head_dim
  std::uint32_t rope = 0;               // qk_rope_head_dim
  std::uint32_t v_head = 0;             // v_head_dim
  std::uint32_t vocabulary = 0;         // vocab_size
  std::uint32_t intermediate = 0;       // intermediate_size, of dense layers
  std::uint32_t moe_intermediate = 0;   // moe_intermediate_size
  std::uint32_t experts = 0;            // n_routed_experts
  std::uint32_t experts_per_token = 0;  // num_experts_per_tok
  std::uint32_t shared_experts = 0;     // n_shared_experts
  std::uint32_t groups = 1;             // n_group
  std::uint32_t topk_groups = 1;        // topk_group
  std::uint32_t first_dense = 0;        // first_k_dense_replace
  bool normalise_topk = true;           // norm_topk_prob
  float routed_scaling = 1;             // routed_scaling_factor
  float rms_epsilon = 1e-6F;            // rms_norm_eps
  double rope_theta = 10000;
  std::uint32_t max_position = 0;  // max_position_embeddings
  std::optional<Yarn> yarn;
  std::vector<std::uint32_t> eos;  // eos_token_id: one or a list

  std::uint32_t q_head() const { return nope + rope; }
  std::uint32_t kv_entry() const { return kv_lora + rope; }  // floats cached for a token and layer
  bool dense(std::uint32_t layer) const { return layer < first_dense; }
};

// An error's subject is the field and its value, its reason what is supported instead.
Result<ModelConfig> parse_config(const nlohmann::json& json);
// Reads DIRECTORY/config.json.
Result<ModelConfig> load_config(const std::string& directory);

}  // namespace troika::native
