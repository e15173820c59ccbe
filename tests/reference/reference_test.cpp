// The engine's float32 forward pass against reference.py in float64.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/maker/model_maker.hpp"
#include "engine/native/stage.hpp"
#include "tests/unit/engine/temporary_directory.hpp"

namespace troika::native {
namespace {

struct Answer {
  std::vector<std::uint32_t> tokens;
  std::vector<std::vector<double>> logits;
};

Answer ask_reference(const std::string& model, const std::vector<std::uint32_t>& prompt, int generate) {
  std::string command = std::string("/usr/bin/python3 '") + TROIKA_REFERENCE + "' '" + model + "' --tokens ";
  for (std::size_t i = 0; i < prompt.size(); ++i)
    command += (i == 0 ? "" : ",") + std::to_string(prompt[i]);
  command += " --generate " + std::to_string(generate);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 65536> buffer{};
  while (const auto got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), got);
  EXPECT_EQ(::pclose(pipe), 0);
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) return {};
  return {document["tokens"].get<std::vector<std::uint32_t>>(),
          document["logits"].get<std::vector<std::vector<double>>>()};
}

Answer ask_engine(const std::string& model, const std::vector<std::uint32_t>& prompt, int generate) {
  const auto config = load_config(model);
  EXPECT_TRUE(config.ok());
  auto stage = Stage::load(model, *config, {{0, config->layers}, 1024, 1}, [](auto, auto) { return true; });
  EXPECT_TRUE(stage.ok()) << (stage.ok() ? "" : stage.error().message());
  const std::atomic<bool> stop{false};
  Answer answer;
  Step step{1, {}, {{1, {}}}, {{1, 0, static_cast<std::uint32_t>(prompt.size()), true}}, prompt, {}};
  auto length = static_cast<std::uint32_t>(prompt.size());
  for (int i = 0; i < generate; ++i) {
    StepTokens tokens;
    const auto status = (*stage)->run(step, tokens, stop);
    EXPECT_TRUE(status.ok());
    const auto& logits = (*stage)->last_logits();
    answer.logits.emplace_back(logits.begin(), logits.end());
    answer.tokens.push_back(tokens.sampled.at(0).token);
    step = {step.number + 1, {}, {}, {{1, length++, 1, true}}, {answer.tokens.back()}, {}};
  }
  return answer;
}

void compare(const maker::MakerOptions& options, std::size_t prompt_tokens) {
  const TemporaryDirectory directory;
  const auto model = directory.path() + "/model";
  const auto made = maker::make_model(model, options);
  ASSERT_TRUE(made.ok()) << made.error().message();
  const auto vocabulary = load_config(model)->vocabulary;
  std::vector<std::uint32_t> prompt;
  for (std::size_t i = 0; i < prompt_tokens; ++i) {
    prompt.push_back(static_cast<std::uint32_t>((i * i * 7 + i * 31 + options.seed) % vocabulary));
  }
  constexpr int kGenerate = 6;
  const auto expected = ask_reference(model, prompt, kGenerate);
  const auto got = ask_engine(model, prompt, kGenerate);
  EXPECT_EQ(got.tokens, expected.tokens);
  ASSERT_EQ(got.logits.size(), expected.logits.size());
  for (std::size_t i = 0; i < got.logits.size(); ++i) {
    double most = 0;
    double difference = 0;
    for (std::size_t k = 0; k < got.logits[i].size(); ++k) {
      most = std::max(most, std::abs(expected.logits[i][k]));
      difference = std::max(difference, std::abs(got.logits[i][k] - expected.logits[i][k]));
    }
    EXPECT_GT(most, 0.1);
    EXPECT_LE(difference / most, 1e-4) << "step " << i;
  }
}

TEST(Reference, TinyModelWithQLoraAndYarnBeyondTheOriginalContext) {
  compare(maker::tiny_model(), 150);
}

TEST(Reference, WithoutQLoraWithoutYarnOneGroup) {
  auto options = maker::tiny_model();
  options.seed = 2;
  options.q_lora = 0;
  options.yarn = false;
  options.groups = 1;
  options.topk_groups = 1;
  options.experts_per_token = 3;
  compare(options, 90);
}

TEST(Reference, ManyGroupsNoNormalisationTwoSharedExpertsTwoDenseLayers) {
  auto options = maker::tiny_model();
  options.seed = 3;
  options.experts = 16;
  options.groups = 8;
  options.topk_groups = 3;
  options.experts_per_token = 4;
  options.shared_experts = 2;
  options.first_dense = 2;
  options.normalise_topk = false;
  options.routed_scaling = 1.3;
  options.yarn_factor = 16;
  options.original_max_position = 32;
  options.yarn_mscale = 0.7;
  options.yarn_mscale_all_dim = 0.4;
  compare(options, 120);
}

TEST(Reference, NoSharedExpertNoDenseLayerOneExpertAToken) {
  auto options = maker::tiny_model();
  options.seed = 4;
  options.shared_experts = 0;
  options.first_dense = 0;
  options.experts_per_token = 1;
  options.groups = 2;
  options.topk_groups = 1;
  options.q_lora = 0;
  compare(options, 80);
}

}  // namespace
}  // namespace troika::native
