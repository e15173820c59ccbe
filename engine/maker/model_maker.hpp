// Makes a small DeepSeek V3 model with seeded weights, complete with its tokenizer: for the demo, tests and
// rehearsals.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "vocabulary/result.hpp"

namespace troika::maker {

// Names as in config.json where they differ from native::ModelConfig's fields. The defaults make about 40 MB.
struct MakerOptions {
  std::uint64_t seed = 1;
  std::string name = "troika-small-v3";
  std::uint32_t layers = 43;
  std::uint32_t shards = 46;  // at most layers + 3: the embedding, the norm and the head have one each
  std::uint32_t hidden = 192;
  std::uint32_t heads = 4;
  std::uint32_t q_lora = 96;  // 0: q_lora_rank null
  std::uint32_t kv_lora = 64;
  std::uint32_t nope = 32;
  std::uint32_t rope = 16;
  std::uint32_t v_head = 32;
  std::uint32_t intermediate = 512;
  std::uint32_t moe_intermediate = 64;
  std::uint32_t experts = 8;
  std::uint32_t experts_per_token = 2;
  std::uint32_t shared_experts = 1;
  std::uint32_t groups = 4;
  std::uint32_t topk_groups = 2;
  std::uint32_t first_dense = 1;
  std::uint32_t merges = 512;
  double routed_scaling = 2.5;
  bool normalise_topk = true;
  bool yarn = true;
  double yarn_factor = 4;
  double yarn_mscale = 1;
  double yarn_mscale_all_dim = 1;
  std::uint32_t original_max_position = 4096;
  std::uint32_t max_position = 16384;
};

// A model of five layers and hidden 32 that tests load in milliseconds.
MakerOptions tiny_model();

struct MadeModel {
  std::uint64_t bytes = 0;  // of all files
  std::uint32_t files = 0;
};

using MakerProgress = std::function<void(std::uint32_t shards_done, std::uint32_t shards)>;

// Writes model-000NN-of-000MM.safetensors, model.safetensors.index.json, config.json, generation_config.json,
// tokenizer.json and tokenizer_config.json into `directory`, which is made if it is not there and must be
// empty. The same options give the same bytes on every machine. Error: the options make no valid model (by
// name of the field), or the files cannot be written.
Result<MadeModel> make_model(const std::string& directory, const MakerOptions& options,
                             const MakerProgress& progress = {});

// The manifest of a directory's files as JSON:
// {"format":1,"model","revision","files":{NAME:{"bytes","sha256"}}}. The revision is derived from the
// content: 40 hex digits. Files that start with a dot are left out.
Result<std::string> manifest_of(const std::string& directory, const std::string& model);

}  // namespace troika::maker
