#include "engine/maker/model_maker.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/maker/sample_text.hpp"
#include "engine/maker/seeded_weights.hpp"
#include "engine/maker/shard_writer.hpp"
#include "engine/maker/toy_tokenizer.hpp"
#include "engine/native/config.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace troika::maker {
namespace {

using json = nlohmann::ordered_json;
using kernels::Bf16;
using Shape = std::vector<std::uint64_t>;

json config_of(const MakerOptions& o, const ToyTokenizer& tokens) {
  json config = {{"architectures", {"DeepseekV3ForCausalLM"}},
                 {"attention_bias", false},
                 {"attention_dropout", 0.0},
                 {"bos_token_id", tokens.bos},
                 {"eos_token_id", tokens.eos},
                 {"ep_size", 1},
                 {"first_k_dense_replace", o.first_dense},
                 {"hidden_act", "silu"},
                 {"hidden_size", o.hidden},
                 {"initializer_range", 0.02},
                 {"intermediate_size", o.intermediate},
                 {"kv_lora_rank", o.kv_lora},
                 {"max_position_embeddings", o.max_position},
                 {"model_type", "deepseek_v3"},
                 {"moe_intermediate_size", o.moe_intermediate},
                 {"moe_layer_freq", 1},
                 {"n_group", o.groups},
                 {"n_routed_experts", o.experts},
                 {"n_shared_experts", o.shared_experts},
                 {"norm_topk_prob", o.normalise_topk},
                 {"num_attention_heads", o.heads},
                 {"num_experts_per_tok", o.experts_per_token},
                 {"num_hidden_layers", o.layers},
                 {"num_key_value_heads", o.heads},
                 {"q_lora_rank", nullptr},
                 {"qk_nope_head_dim", o.nope},
                 {"qk_rope_head_dim", o.rope},
                 {"rms_norm_eps", 1e-6},
                 {"rope_scaling", nullptr},
                 {"rope_theta", 10000},
                 {"routed_scaling_factor", o.routed_scaling},
                 {"scoring_func", "sigmoid"},
                 {"tie_word_embeddings", false},
                 {"topk_group", o.topk_groups},
                 {"topk_method", "noaux_tc"},
                 {"torch_dtype", "bfloat16"},
                 {"use_cache", true},
                 {"v_head_dim", o.v_head},
                 {"vocab_size", tokens.size}};
  if (o.q_lora > 0) config["q_lora_rank"] = o.q_lora;
  if (o.yarn) {
    config["rope_scaling"] = {{"beta_fast", 32},
                              {"beta_slow", 1},
                              {"factor", o.yarn_factor},
                              {"mscale", o.yarn_mscale},
                              {"mscale_all_dim", o.yarn_mscale_all_dim},
                              {"original_max_position_embeddings", o.original_max_position},
                              {"type", "yarn"}};
  }
  return config;
}

// Makes tensors unit by unit: the embedding, each layer, the norm, the head.
class Tensors {
 public:
  Tensors(const MakerOptions& options, std::uint32_t vocabulary) : o_(options), vocabulary_(vocabulary) {}

  std::vector<OutTensor> unit(std::uint32_t number, const tokenizer::Tokenizer& tokens) {
    out_.clear();
    if (number == 0) {
      matrix("model.embed_tokens.weight", {vocabulary_, o_.hidden}, 1.0F);
    } else if (number <= o_.layers) {
      layer(number - 1);
    } else if (number == o_.layers + 1) {
      norm("model.norm.weight", o_.hidden);
    } else {
      head(tokens);
    }
    return std::move(out_);
  }

 private:
  // Entries of the deviation 1/sqrt(inputs) keep a vector's length.
  void linear(const std::string& name, std::uint64_t outputs, std::uint64_t inputs, float gain = 1) {
    matrix(name, {outputs, inputs}, gain / std::sqrt(static_cast<float>(inputs)));
  }
  void matrix(const std::string& name, Shape shape, float deviation) {
    const auto count = static_cast<std::size_t>(shape[0] * shape[1]);
    out_.push_back({name, std::move(shape), seeded_bf16(SeededValues(o_.seed, name), count, deviation), {}});
  }
  void norm(const std::string& name, std::uint64_t n) {
    out_.push_back({name, {n}, seeded_bf16(SeededValues(o_.seed, name), n, 0.1F, 1.0F), {}});
  }

  void feed_forward(const std::string& prefix, std::uint32_t width, float gain) {
    linear(prefix + "gate_proj.weight", width, o_.hidden, 1.5F);
    linear(prefix + "up_proj.weight", width, o_.hidden);
    linear(prefix + "down_proj.weight", o_.hidden, width, gain);
  }

  void layer(std::uint32_t number) {
    // What all layers add together stays near the length of the embedding, whatever their number.
    const float gain = 1.5F / std::sqrt(static_cast<float>(o_.layers));
    const std::string prefix = "model.layers." + std::to_string(number) + ".";
    const std::string attention = prefix + "self_attn.";
    norm(prefix + "input_layernorm.weight", o_.hidden);
    if (o_.q_lora == 0) {
      linear(attention + "q_proj.weight", std::uint64_t{o_.heads} * (o_.nope + o_.rope), o_.hidden, 1.5F);
    } else {
      linear(attention + "q_a_proj.weight", o_.q_lora, o_.hidden);
      norm(attention + "q_a_layernorm.weight", o_.q_lora);
      linear(attention + "q_b_proj.weight", std::uint64_t{o_.heads} * (o_.nope + o_.rope), o_.q_lora, 1.5F);
    }
    linear(attention + "kv_a_proj_with_mqa.weight", o_.kv_lora + o_.rope, o_.hidden);
    norm(attention + "kv_a_layernorm.weight", o_.kv_lora);
    linear(attention + "kv_b_proj.weight", std::uint64_t{o_.heads} * (o_.nope + o_.v_head), o_.kv_lora);
    linear(attention + "o_proj.weight", o_.hidden, std::uint64_t{o_.heads} * o_.v_head, gain);
    norm(prefix + "post_attention_layernorm.weight", o_.hidden);
    const std::string mlp = prefix + "mlp.";
    if (number < o_.first_dense) {
      feed_forward(mlp, o_.intermediate, gain);
      return;
    }
    linear(mlp + "gate.weight", o_.experts, o_.hidden);
    const std::string bias_name = mlp + "gate.e_score_correction_bias";
    SeededValues values(o_.seed, bias_name);
    std::vector<float> bias(o_.experts);
    for (auto& value : bias)
      value = values.next() * 0.05F;
    out_.push_back({bias_name, {o_.experts}, {}, std::move(bias)});
    for (std::uint32_t i = 0; i < o_.experts; ++i) {
      feed_forward(mlp + "experts." + std::to_string(i) + ".", o_.moe_intermediate, gain);
    }
    if (o_.shared_experts > 0)
      feed_forward(mlp + "shared_experts.", o_.moe_intermediate * o_.shared_experts, gain);
  }

  // A row of the head is the sum of the embeddings of the tokens that come before this one in the sample
  // text, plus noise. So the model babbles in words, and what the layers add makes it wander. Special tokens
  // have rows of zeros: they hardly ever come.
  void head(const tokenizer::Tokenizer& tokens) {
    const std::size_t n = o_.hidden;
    const auto embedding =
        seeded_bf16(SeededValues(o_.seed, "model.embed_tokens.weight"), vocabulary_ * n, 1.0F);
    SeededValues values(o_.seed, "lm_head.weight");
    const float unit = 1.0F / std::sqrt(static_cast<float>(n));
    std::vector<float> rows(vocabulary_ * n);
    for (std::uint32_t token = 0; token < vocabulary_; ++token) {
      const bool plain = !tokens.is_special(token) && !tokens.bytes_of(token).starts_with("<｜");
      for (std::size_t k = 0; k < n; ++k)
        rows[token * n + k] = plain ? values.next() * unit * 1.7F : 0.0F;
    }
    const auto sample = tokens.encode(kSampleText);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pairs;
    std::uint32_t before = tokens.added_token("<｜Assistant｜>").value_or(0);
    for (const auto token : *sample) {
      ++pairs[{before, token}];
      before = tokens.bytes_of(token).find('\n') == std::string::npos ? token : before;
    }
    for (const auto& [pair, count] : pairs) {
      const float weight = unit * 6.0F * std::sqrt(std::sqrt(static_cast<float>(count)));
      for (std::size_t k = 0; k < n; ++k) {
        const float product = kernels::to_float(embedding[pair.first * n + k]) * weight;
        rows[pair.second * n + k] += product * unit * 4.0F;
      }
    }
    OutTensor tensor{"lm_head.weight", {vocabulary_, n}, std::vector<Bf16>(rows.size()), {}};
    for (std::size_t i = 0; i < rows.size(); ++i)
      tensor.values[i] = kernels::to_bf16(rows[i]);
    out_.push_back(std::move(tensor));
  }

  const MakerOptions& o_;
  std::uint32_t vocabulary_;
  std::vector<OutTensor> out_;
};

Status prepare(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Error{"create", directory, error.message()};
  const bool empty = std::filesystem::is_empty(directory, error);
  if (error) return Error{"read", directory, error.message()};
  if (!empty) return Error{"make a model in", directory, "the directory is not empty"};
  return Done{};
}

}  // namespace

MakerOptions tiny_model() {
  MakerOptions o;
  o.name = "troika-tiny-v3";
  o.layers = 5;
  o.shards = 4;
  o.hidden = 32;
  o.heads = 2;
  o.q_lora = 24;
  o.kv_lora = 16;
  o.nope = 12;
  o.rope = 8;
  o.v_head = 10;
  o.intermediate = 48;
  o.moe_intermediate = 20;
  o.merges = 64;
  o.original_max_position = 64;
  o.max_position = 1024;
  return o;
}

Result<MadeModel> make_model(const std::string& directory, const MakerOptions& options,
                             const MakerProgress& progress) {
  const std::uint32_t units = options.layers + 3;
  if (options.shards == 0 || options.shards > units) {
    return Error{"make a model of", std::to_string(options.shards) + " shards",
                 "must be from 1 to layers + 3 = " + std::to_string(units)};
  }
  TROIKA_TRY(toy, train_tokenizer(kSampleText, options.merges));
  TROIKA_TRY(tokens, tokenizer::Tokenizer::parse(toy.json));
  const json config = config_of(options, toy);
  TROIKA_CHECK(native::parse_config(nlohmann::json(config)));
  TROIKA_CHECK(prepare(directory));

  MadeModel made;
  Tensors tensors(options, toy.size);
  std::map<std::string, std::string> weight_map;
  std::uint64_t total_size = 0;
  for (std::uint32_t shard = 0; shard < options.shards; ++shard) {
    std::vector<OutTensor> content;
    for (std::uint32_t unit = 0; unit < units; ++unit) {
      if (std::uint64_t{unit} * options.shards / units != shard) continue;
      for (auto& tensor : tensors.unit(unit, tokens))
        content.push_back(std::move(tensor));
    }
    const auto file = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, options.shards);
    TROIKA_TRY(bytes, write_shard(directory + "/" + file, content));
    made.bytes += bytes;
    for (const auto& tensor : content) {
      weight_map[tensor.name] = file;
      total_size += tensor.values.size() * sizeof(Bf16) + tensor.wide_values.size() * sizeof(float);
    }
    if (progress) progress(shard + 1, options.shards);
  }
  const json tokenizer_config = {{"add_bos_token", true},
                                 {"add_eos_token", false},
                                 {"bos_token", "<｜begin▁of▁sentence｜>"},
                                 {"eos_token", "<｜end▁of▁sentence｜>"},
                                 {"pad_token", "<｜end▁of▁sentence｜>"},
                                 {"model_max_length", options.max_position},
                                 {"tokenizer_class", "LlamaTokenizerFast"}};
  const std::pair<const char*, std::string> documents[] = {
      {"model.safetensors.index.json",
       json{{"metadata", {{"total_size", total_size}}}, {"weight_map", weight_map}}.dump(2) + "\n"},
      {"config.json", config.dump(2) + "\n"},
      {"generation_config.json", json{{"bos_token_id", toy.bos},
                                      {"eos_token_id", toy.eos},
                                      {"do_sample", true},
                                      {"temperature", 0.6},
                                      {"top_p", 0.95}}
                                         .dump(2) +
                                     "\n"},
      {"tokenizer.json", toy.json},
      {"tokenizer_config.json", tokenizer_config.dump(2) + "\n"}};
  for (const auto& [name, content] : documents) {
    TROIKA_CHECK(write_file(directory + "/" + name, content));
    made.bytes += content.size();
  }
  made.files = options.shards + 5;
  return made;
}

}  // namespace troika::maker
