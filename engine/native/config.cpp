#include "engine/native/config.hpp"

#include <cmath>
#include <utility>

#include "engine/safetensors/files.hpp"
#include "engine/safetensors/json_strict.hpp"

namespace troika::native {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestConfig = 1U << 20U;
// Beyond any model there is; keeps the products of sizes within 64 bits.
constexpr std::uint64_t kLargestExtent = 1U << 20U;
constexpr std::uint64_t kLargestPosition = 1U << 24U;

Error refuse(const std::string& field, const json& value, std::string reason) {
  auto text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return Error{"run a model with", field + " = " + text, std::move(reason)};
}

// Reads fields and remembers the first error.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}

  std::uint32_t count(const char* field, std::uint64_t least, std::uint64_t most,
                      std::optional<std::uint32_t> fallback = {}) {
    const auto found = object_.find(field);
    if (found == object_.end() || found->is_null()) {
      if (!fallback) fail(field, nullptr, "the field is required");
      return fallback.value_or(0);
    }
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() < least ||
        found->get<std::uint64_t>() > most) {
      fail(field, *found,
           "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
      return 0;
    }
    return found->get<std::uint32_t>();
  }

  double number(const char* field, double least, double most, std::optional<double> fallback) {
    const auto found = object_.find(field);
    if (found == object_.end() || found->is_null()) {
      if (!fallback) fail(field, nullptr, "the field is required");
      return fallback.value_or(0);
    }
    if (!found->is_number() || !(found->get<double>() >= least) || !(found->get<double>() <= most)) {
      fail(field, *found, "must be a number from " + std::to_string(least) + " to " + std::to_string(most));
      return 0;
    }
    return found->get<double>();
  }

  bool flag(const char* field, bool fallback) {
    const auto found = object_.find(field);
    if (found == object_.end() || found->is_null()) return fallback;
    if (!found->is_boolean()) {
      fail(field, *found, "must be true or false");
      return fallback;
    }
    return found->get<bool>();
  }

  // The field must be absent (or null, unless `required`) or have this value.
  void only(const char* field, const json& value, bool required = false) {
    const auto found = object_.find(field);
    const bool absent = found == object_.end() || found->is_null();
    if (absent && required) fail(field, nullptr, "only " + value.dump() + " is supported");
    if (!absent && *found != value) fail(field, *found, "only " + value.dump() + " is supported");
  }

  void fail(const std::string& field, const json& value, std::string reason) {
    if (!error_) error_ = refuse(field, value, std::move(reason));
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  const json& object_;
  std::optional<Error> error_;
};

Status check_supported(const json& config) {
  if (!config.is_object()) return Error{"run a model with", "config.json", "not an object"};
  // The architecture first: it explains every other difference.
  if (const auto found = config.find("model_type"); found == config.end() || *found != "deepseek_v3") {
    return refuse("model_type", found == config.end() ? json() : *found, "only \"deepseek_v3\" is supported");
  }
  const json architectures = json::array({"DeepseekV3ForCausalLM"});
  if (const auto found = config.find("architectures"); found == config.end() || *found != architectures) {
    return refuse("architectures", found == config.end() ? json() : *found,
                  "only [\"DeepseekV3ForCausalLM\"] is supported");
  }
  Fields fields(config);
  fields.only("quantization_config", nullptr);
  fields.only("torch_dtype", "bfloat16");
  fields.only("dtype", "bfloat16");
  fields.only("tie_word_embeddings", false);
  fields.only("attention_bias", false);
  fields.only("hidden_act", "silu");
  fields.only("scoring_func", "sigmoid");
  fields.only("topk_method", "noaux_tc");
  fields.only("moe_layer_freq", 1);
  fields.only("rope_interleave", true);
  fields.only("sliding_window", nullptr);
  fields.only("rope_parameters", nullptr);
  if (fields.error()) return *fields.error();
  return Done{};
}

Result<std::optional<Yarn>> parse_rope_scaling(const json& config) {
  const auto found = config.find("rope_scaling");
  if (found == config.end() || found->is_null()) return std::optional<Yarn>();
  if (!found->is_object()) return refuse("rope_scaling", *found, "must be an object or null");
  const auto& scaling = *found;
  const char* key = scaling.contains("rope_type") ? "rope_type" : "type";
  const auto type = scaling.value(key, json());
  if (type == "default") return std::optional<Yarn>();
  if (type != "yarn") return refuse(std::string("rope_scaling.") + key, type, "only \"yarn\" is supported");
  for (const auto& item : scaling.items()) {
    static const json known = {"type",      "rope_type", "factor",         "beta_fast",
                               "beta_slow", "mscale",    "mscale_all_dim", "original_max_position_embeddings",
                               "rope_theta"};
    if (std::find(known.begin(), known.end(), json(item.key())) == known.end()) {
      return refuse("rope_scaling." + item.key(), item.value(), "the field is not known");
    }
  }
  Fields fields(scaling);
  Yarn yarn;
  yarn.factor = fields.number("factor", 1.0, 1e6, {});
  yarn.beta_fast = fields.number("beta_fast", 1e-3, 1e6, 32.0);
  yarn.beta_slow = fields.number("beta_slow", 1e-3, 1e6, 1.0);
  yarn.mscale = fields.number("mscale", 0.0, 100.0, 1.0);
  yarn.mscale_all_dim = fields.number("mscale_all_dim", 0.0, 100.0, 0.0);
  yarn.original_max_position = fields.count("original_max_position_embeddings", 1, kLargestPosition);
  if (fields.error()) {
    Error error = *fields.error();
    error.subject = "rope_scaling." + error.subject;
    return error;
  }
  return std::optional<Yarn>(yarn);
}

Result<std::vector<std::uint32_t>> parse_eos(const json& config, std::uint32_t vocabulary) {
  const auto value = config.value("eos_token_id", json());
  if (value.is_null()) return std::vector<std::uint32_t>();
  const json list = value.is_array() ? value : json::array({value});
  std::vector<std::uint32_t> eos;
  for (const auto& id : list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocabulary || eos.size() >= 64) {
      return refuse("eos_token_id", value, "must be a token id below vocab_size, or a list of at most 64");
    }
    eos.push_back(id.get<std::uint32_t>());
  }
  return eos;
}

void check_relations(const ModelConfig& model, const json& config, Fields& fields) {
  if (model.rope % 2 != 0) fields.fail("qk_rope_head_dim", model.rope, "must be even");
  if (model.first_dense > model.layers) {
    fields.fail("first_k_dense_replace", model.first_dense, "must not exceed num_hidden_layers");
  }
  const double largest = model.moe_intermediate * static_cast<double>(std::max(1U, model.shared_experts));
  if (largest > static_cast<double>(kLargestExtent))
    fields.fail("n_shared_experts", model.shared_experts, "too many");
  if (model.first_dense >= model.layers || fields.error()) return;
  if (model.experts % model.groups != 0)
    fields.fail("n_group", model.groups, "must divide n_routed_experts");
  else if (model.experts / model.groups < 2)
    fields.fail("n_group", model.groups, "a group needs two experts or more");
  if (model.topk_groups > model.groups)
    fields.fail("topk_group", model.topk_groups, "must not exceed n_group");
  else if (model.experts_per_token > model.experts / model.groups * model.topk_groups) {
    fields.fail("num_experts_per_tok", model.experts_per_token, "more than topk_group groups hold");
  }
  if (config.value("num_key_value_heads", json(model.heads)) != json(model.heads)) {
    fields.fail("num_key_value_heads", config["num_key_value_heads"], "must equal num_attention_heads");
  }
}

}  // namespace

Result<ModelConfig> parse_config(const json& config) {
  TROIKA_CHECK(check_supported(config));
  Fields fields(config);
  ModelConfig model;
  model.hidden = fields.count("hidden_size", 1, kLargestExtent);
  model.layers = fields.count("num_hidden_layers", 1, 1024);
  model.heads = fields.count("num_attention_heads", 1, 4096);
  model.q_lora = fields.count("q_lora_rank", 1, kLargestExtent, 0);
  model.kv_lora = fields.count("kv_lora_rank", 1, kLargestExtent);
  model.nope = fields.count("qk_nope_head_dim", 1, 4096);
  model.rope = fields.count("qk_rope_head_dim", 2, 4096);
  model.v_head = fields.count("v_head_dim", 1, 4096);
  model.vocabulary = fields.count("vocab_size", 1, 4'000'000);
  model.intermediate = fields.count("intermediate_size", 1, kLargestExtent);
  model.first_dense = fields.count("first_k_dense_replace", 0, 1024, 0);
  if (model.first_dense < model.layers) {
    model.moe_intermediate = fields.count("moe_intermediate_size", 1, kLargestExtent);
    model.experts = fields.count("n_routed_experts", 2, 65536);
    model.experts_per_token = fields.count("num_experts_per_tok", 1, 1024);
    model.shared_experts = fields.count("n_shared_experts", 0, 1024, 0);
    model.groups = fields.count("n_group", 1, 65536);
    model.topk_groups = fields.count("topk_group", 1, 65536);
    model.normalise_topk = fields.flag("norm_topk_prob", true);
    model.routed_scaling = static_cast<float>(fields.number("routed_scaling_factor", 0.0, 1e6, 1.0));
  }
  model.rms_epsilon = static_cast<float>(fields.number("rms_norm_eps", 0.0, 1.0, 1e-6));
  model.rope_theta = fields.number("rope_theta", 1.0001, 1e12, 10000.0);
  model.max_position = fields.count("max_position_embeddings", 1, kLargestPosition);
  if (!fields.error()) check_relations(model, config, fields);
  if (fields.error()) return *fields.error();
  TROIKA_TRY(yarn, parse_rope_scaling(config));
  model.yarn = yarn;
  TROIKA_TRY(eos, parse_eos(config, model.vocabulary));
  model.eos = eos;
  return model;
}

Result<ModelConfig> load_config(const std::string& directory) {
  TROIKA_TRY(text, safetensors::read_text(directory + "/config.json", kLargestConfig));
  TROIKA_TRY(document, safetensors::parse_strict(text, directory + "/config.json"));
  return parse_config(document);
}

}  // namespace troika::native
