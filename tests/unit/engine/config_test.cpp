#include "engine/native/config.hpp"

#include <gtest/gtest.h>

#include "engine/maker/model_maker.hpp"
#include "engine/safetensors/files.hpp"
#include "tests/unit/engine/temporary_directory.hpp"

namespace troika::native {
namespace {

using nlohmann::json;

const json& tiny_config() {
  static const json config = [] {
    const TemporaryDirectory directory;
    EXPECT_TRUE(maker::make_model(directory.path() + "/m", maker::tiny_model()).ok());
    return json::parse(*safetensors::read_text(directory.path() + "/m/config.json", 1U << 20U));
  }();
  return config;
}

TEST(Config, ReadsTheTinyModel) {
  const auto config = parse_config(tiny_config());
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->layers, 5U);
  EXPECT_EQ(config->hidden, 32U);
  EXPECT_EQ(config->q_lora, 24U);
  EXPECT_EQ(config->kv_entry(), 24U);
  ASSERT_TRUE(config->yarn.has_value());
  EXPECT_EQ(config->yarn->original_max_position, 64U);
  EXPECT_EQ(config->eos, std::vector<std::uint32_t>{1});
}

TEST(Config, AcceptsAListOfEndTokens) {
  auto document = tiny_config();
  document["eos_token_id"] = json::parse("[1,5]");
  const auto config = parse_config(document);
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->eos, (std::vector<std::uint32_t>{1, 5}));
}

TEST(Config, NamesTheProductionModelsArchitecture) {
  auto document = tiny_config();
  document["model_type"] = "deepseek_v4";
  document["architectures"] = {"DeepseekV4ForCausalLM"};
  const auto config = parse_config(document);
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().subject, "model_type = \"deepseek_v4\"");
}

struct Refusal {
  const char* field;
  json value;
};

void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.field;
}

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, IsNamed) {
  auto document = tiny_config();
  document[json::json_pointer(GetParam().field)] =
      json::parse(GetParam().value.dump());  // as read from a file
  const auto config = parse_config(document);
  ASSERT_FALSE(config.ok());
  std::string name = std::string(GetParam().field).substr(1);
  if (const auto slash = name.find('/'); slash != std::string::npos) name[slash] = '.';
  EXPECT_EQ(config.error().subject.rfind(name, 0), 0U) << config.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Fields, Refused,
    testing::Values(
        Refusal{"/architectures", {"LlamaForCausalLM"}}, Refusal{"/model_type", "llama"},
        Refusal{"/quantization_config", {{"quant_method", "fp8"}}}, Refusal{"/torch_dtype", "float16"},
        Refusal{"/tie_word_embeddings", true}, Refusal{"/attention_bias", true},
        Refusal{"/hidden_act", "gelu"}, Refusal{"/scoring_func", "softmax"},
        Refusal{"/topk_method", "greedy"}, Refusal{"/moe_layer_freq", 2}, Refusal{"/rope_interleave", false},
        Refusal{"/rope_scaling/type", "linear"}, Refusal{"/rope_scaling/factor", 0.5},
        Refusal{"/rope_scaling/attention_factor", 1.0},
        Refusal{"/rope_scaling/original_max_position_embeddings", nullptr}, Refusal{"/rope_scaling", 5},
        Refusal{"/hidden_size", 0}, Refusal{"/hidden_size", -1}, Refusal{"/hidden_size", "32"},
        Refusal{"/hidden_size", nullptr}, Refusal{"/num_hidden_layers", 5000},
        Refusal{"/kv_lora_rank", nullptr}, Refusal{"/qk_rope_head_dim", 7}, Refusal{"/n_group", 3},
        Refusal{"/n_group", 8}, Refusal{"/topk_group", 5}, Refusal{"/num_experts_per_tok", 5},
        Refusal{"/first_k_dense_replace", 6}, Refusal{"/rms_norm_eps", "small"},
        Refusal{"/rms_norm_eps", -1.0}, Refusal{"/norm_topk_prob", 1}, Refusal{"/num_key_value_heads", 1},
        Refusal{"/eos_token_id", 100000}, Refusal{"/eos_token_id", "x"}, Refusal{"/vocab_size", 1.5}));

}  // namespace
}  // namespace troika::native
