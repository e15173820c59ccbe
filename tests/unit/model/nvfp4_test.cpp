// Mode 6: an NVFP4 tree whose config.json does not tell so is loaded as another format.
#include "agent/model/nvfp4.hpp"

#include <map>

#include "tests/unit/model/tree.hpp"

namespace troika::model {
namespace {

struct Form {
  std::string dtype;
  std::string shape;
  std::uint64_t bytes = 0;
};
using Tensors = std::map<std::string, Form>;

const std::string kExperts = "layers.5.ffn.experts.";

// 64 inputs and 4 outputs, in groups of 16.
Tensors linear(const std::string& name) {
  return {{name + ".weight", {"U8", "[4,32]", 128}},
          {name + ".weight_scale", {"F8_E4M3", "[4,4]", 16}},
          {name + ".weight_scale_2", {"F32", "[]", 4}},
          {name + ".input_scale", {"F32", "[1]", 4}}};
}

std::string shard(const Tensors& tensors) {
  std::string header;
  std::uint64_t at = 0;
  for (const auto& [name, form] : tensors) {
    header += (header.empty() ? "{\"" : ",\"") + name + "\":{\"dtype\":\"" + form.dtype +
              "\",\"shape\":" + form.shape + ",\"data_offsets\":[" + std::to_string(at) + "," +
              std::to_string(at + form.bytes) + "]}";
    at += form.bytes;
  }
  return shard_of(header + "}", std::string(at, 'x'));
}

std::string config(const std::string& quantization) {
  return "{\"model_type\":\"deepseek_v4\",\"quantization_config\":" + quantization + "}";
}

// As NVIDIA's tree has it.
const std::string kMixed =
    R"({"quant_method":"fp8","quant_algo":"MIXED_PRECISION","moe_quant_algo":"NVFP4","group_size":16,)"
    R"("kv_cache_quant_algo":null,"ignore":["*.attn.*","mtp.*"]})";

class Nvfp4 : public TreeTest {
 protected:
  Nvfp4() {
    for (const char* name : {"0.w1", "0.w2", "0.w3", "1.w1", "1.w2", "1.w3"})
      tensors_.merge(linear(kExperts + name));
    // What else lies in such a tree: an MTP layer's MXFP4 expert, a shared FP8 one, a norm.
    tensors_["mtp.0.ffn.experts.0.w1.weight"] = {"I8", "[4,32]", 128};
    tensors_["mtp.0.ffn.experts.0.w1.scale"] = {"F8_E8M0", "[4,2]", 8};
    tensors_["layers.5.ffn.shared_experts.w1.weight"] = {"F8_E4M3", "[4,4]", 16};
    tensors_["layers.5.ffn.shared_experts.w1.weight_scale"] = {"F32", "[]", 4};
    tensors_["norm.weight"] = {"BF16", "[4]", 8};
  }

  ModelProof prove_tree() {
    put("model-00001-of-00001.safetensors", shard(tensors_));
    return prove();
  }
  // Of the only finding, which must be QUANT_CONFIG.
  std::string told() {
    put("model-00001-of-00001.safetensors", shard(tensors_));
    const Finding f = only_error();
    EXPECT_EQ(f.code, Code::QUANT_CONFIG);
    EXPECT_EQ(f.subject, "config.json");
    return f.message;
  }
  void expect_told(const std::string& part) {
    const std::string message = told();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  Tensors tensors_;
};

TEST_F(Nvfp4, TheTreeOfTheFirstTargetIsGood) {
  put("config.json", config(kMixed));
  EXPECT_TRUE(prove_tree().findings.empty());
}

TEST_F(Nvfp4, OtherSpellingsThatEnginesTakeAreGood) {
  for (const char* good :
       {R"({"quant_algo":"MIXED_PRECISION","moe_quant_algo":"nvfp4","group_size":16})",
        R"({"quant_algo":"NVFP4","group_size":16})",
        R"({"quant_algo":"NVFP4","config_groups":{"group_0":{"weights":{"group_size":16}}}})"}) {
    put("config.json", config(good));
    EXPECT_TRUE(prove_tree().findings.empty()) << good;
  }
  // Python's JSON: Nemotron's time_step_limit is [0.0, Infinity].
  put("config.json",
      R"({"a":[0.0,Infinity,-Infinity,NaN],"b":"NaN \" Infinity","quantization_config":)" + kMixed + "}");
  EXPECT_TRUE(prove_tree().findings.empty());
}

TEST_F(Nvfp4, WeightsAloneWithoutActivationsNeedNoInputScale) {
  std::erase_if(tensors_, [](const auto& one) { return one.first.ends_with("input_scale"); });
  put("config.json", config(R"({"quant_algo":"W4A16_NVFP4","group_size":16})"));
  EXPECT_TRUE(prove_tree().findings.empty());
}

TEST_F(Nvfp4, AConfigurationThatDoesNotTellItIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {"{}", "config.json has no quantization_config"},
      {"[]", "config.json has no quantization_config"},
      {"{\"quantization_config\":\"NVFP4\"}", "config.json has no quantization_config"},
      {"{", "not JSON"},
      {"{\"a\":1,\"a\":2}", "twice"},
      {config("{}"), "quant_algo in config.json is absent"},
      {config(R"({"quant_method":"fp8"})"), "quant_algo in config.json is absent"},
      {config(R"({"quant_algo":"FP8","moe_quant_algo":"NVFP4","group_size":16})"),
       "quant_algo in config.json is \"FP8\""},
      {config(R"({"quant_algo":["MIXED_PRECISION"]})"), "quant_algo in config.json is [\"MIXED_PRECISION\"]"},
      {config(R"({"quant_algo":"MIXED_PRECISION","group_size":16})"),
       "moe_quant_algo in config.json is absent"},
      {config(R"({"quant_algo":"MIXED_PRECISION","moe_quant_algo":"MXFP4","group_size":32})"),
       "moe_quant_algo in config.json is \"MXFP4\""},
      {config(R"({"quant_algo":"MIXED_PRECISION","moe_quant_algo":"NVFP4"})"),
       "group_size in config.json is absent"},
      {config(R"({"quant_algo":"MIXED_PRECISION","moe_quant_algo":"NVFP4","group_size":"16"})"),
       "group_size in config.json is \"16\""},
      {config(R"({"quant_algo":"MIXED_PRECISION","moe_quant_algo":"NVFP4","group_size":0})"),
       "group_size in config.json is 0"},
      {config(R"({"quant_algo":"NVFP4","config_groups":{"group_0":7}})"),
       "group_size in config.json is absent"},
  };
  for (const auto& [text, part] : cases) {
    SCOPED_TRACE(text);
    put("config.json", text);
    expect_told(part);
  }
}

TEST_F(Nvfp4, ATreeWithoutConfigurationIsNamed) {
  expect_told("the model has no config.json");
}

// Which of the four are missing, of another type, or of a shape that does not go with the others.
TEST_F(Nvfp4, TensorsThatDoNotGoTogetherAreNamed) {
  put("config.json", config(kMixed));
  const Tensors good = tensors_;
  const std::string one = kExperts + "1.w2.";
  for (const char* part : {"weight", "weight_scale", "weight_scale_2", "input_scale"}) {
    tensors_ = good;
    tensors_.erase(one + part);
    expect_told(one + part + " of an NVFP4 expert is not there");
    tensors_[one + part] = {"F16", "[4,4]", 32};
    expect_told(one + part + " of an NVFP4 expert is F16, not ");
  }
  const std::pair<const char*, Form> shapes[] = {
      {"weight", {"U8", "[128]", 128}},          {"weight_scale", {"F8_E4M3", "[16]", 16}},
      {"weight_scale_2", {"F32", "[4]", 16}},    {"input_scale", {"F32", "[1,1]", 4}},
      {"weight_scale", {"F8_E4M3", "[4,2]", 8}}, {"weight_scale", {"F8_E4M3", "[2,4]", 8}},
      {"weight", {"U8", "[4,33]", 132}},         {"weight", {"U8", "[4,16]", 64}}};
  for (const auto& [part, form] : shapes) {
    tensors_ = good;
    tensors_[one + part] = form;
    SCOPED_TRACE(part + form.shape);
    expect_told(kExperts + "1.w2.");
  }
}

TEST_F(Nvfp4, OneFindingForAllOfAKind) {
  put("config.json", config(kMixed));
  for (auto& [name, form] : tensors_)
    if (name.starts_with(kExperts) && name.ends_with(".weight_scale")) form = {"F8_E4M3", "[4,2]", 8};
  expect_told("(and 5 more in the same way)");
  put("config.json", config(R"({"quant_algo":"NVFP4","group_size":32})"));
  EXPECT_TRUE(prove_tree().findings.empty());  // groups of 32, said and kept
}

// No config.json tells what no tensor keeps.
TEST_F(Nvfp4, AConfigurationOfAnotherTreeIsNamed) {
  put("config.json", config(kMixed));
  std::erase_if(tensors_, [](const auto& one) { return one.first.starts_with(kExperts); });
  expect_told("says that the routed experts are NVFP4");
  // A dense model in NVFP4 has no experts.
  tensors_ = linear("layers.0.mlp.up_proj");
  put("config.json", config(R"({"quant_algo":"NVFP4","group_size":16})"));
  EXPECT_TRUE(prove_tree().findings.empty());
}

// ModelOpt's FP8 experts have scales of nearly the same names.
TEST_F(Nvfp4, Fp8ExpertsAreLeftAlone) {
  tensors_ = {{kExperts + "0.w1.weight", {"F8_E4M3", "[4,4]", 16}},
              {kExperts + "0.w1.weight_scale", {"F32", "[]", 4}},
              {kExperts + "0.w1.input_scale", {"F32", "[]", 4}}};
  put("config.json", config(R"({"quant_algo":"FP8"})"));
  EXPECT_TRUE(prove_tree().findings.empty());
}

// What a missing shard may hold is not said to be missing besides.
TEST_F(Nvfp4, AMissingShardIsTheOnlyFinding) {
  put("config.json", config(kMixed));
  tensors_.erase(kExperts + "0.w1.input_scale");
  list("model-00002-of-00002.safetensors", a01());
  put("model-00001-of-00001.safetensors", shard(tensors_));
  EXPECT_EQ(only_error().code, Code::MISSING_SHARD);
}

}  // namespace
}  // namespace troika::model
