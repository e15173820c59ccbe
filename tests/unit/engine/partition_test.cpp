// Three stages, any chunk size and any batch give the same bits as one stage.
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "engine/maker/model_maker.hpp"
#include "engine/native/stage.hpp"
#include "tests/unit/engine/temporary_directory.hpp"

namespace troika::native {
namespace {

const std::string& tiny_directory() {
  static const TemporaryDirectory directory;
  static const std::string model = [] {
    EXPECT_TRUE(maker::make_model(directory.path() + "/m", maker::tiny_model()).ok());
    return directory.path() + "/m";
  }();
  return model;
}

// Stages chained by hand.
class Chain {
 public:
  Chain(const std::vector<LayerRange>& ranges, std::size_t threads)
      : config_(*load_config(tiny_directory())) {
    for (const auto range : ranges) {
      auto stage =
          Stage::load(tiny_directory(), config_, {range, 2048, threads}, [](auto, auto) { return true; });
      EXPECT_TRUE(stage.ok()) << stage.error().message();
      stages_.push_back(std::move(*stage));
    }
  }

  StepTokens run(Step step) {
    StepTokens tokens;
    for (auto& stage : stages_) {
      const auto status = stage->run(step, tokens, stop_);
      EXPECT_TRUE(status.ok()) << status.error().message();
    }
    return tokens;
  }

  const std::vector<float>& logits() const { return stages_.back()->last_logits(); }
  std::uint32_t vocabulary() const { return config_.vocabulary; }
  Stage& stage(std::size_t rank) { return *stages_[rank]; }

 private:
  ModelConfig config_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Stage>> stages_;
};

struct Output {
  std::vector<tokenizer::TokenId> tokens;
  std::vector<std::vector<float>> logits;
  bool operator==(const Output&) const = default;
};

std::vector<tokenizer::TokenId> prompt(std::uint32_t count, std::uint32_t vocabulary, std::uint32_t salt) {
  std::vector<tokenizer::TokenId> out;
  for (std::uint32_t i = 0; i < count; ++i)
    out.push_back((i * i * 5 + i * salt + salt) % vocabulary);
  return out;
}

// Generates with prompts in chunks; a second sequence shares every step when `crowd` is set.
Output generate(Chain& chain, std::uint32_t chunk, const Sampling& sampling, bool crowd) {
  Output out;
  const auto tokens = prompt(100, chain.vocabulary(), 11);
  std::uint64_t number = 0;
  std::uint32_t crowd_at = 0;
  const auto step_for = [&](std::uint32_t start, std::vector<tokenizer::TokenId> part, bool sample) {
    Step step;
    step.number = ++number;
    if (number == 1) step.admissions.push_back({1, sampling});
    if (crowd) {
      if (number == 1) step.admissions.push_back({2, {}});
      step.segments.push_back({2, crowd_at, 3, false});
      step.tokens = {4, 5, 6};
      crowd_at += 3;
    }
    step.segments.push_back({1, start, static_cast<std::uint32_t>(part.size()), sample});
    step.tokens.insert(step.tokens.end(), part.begin(), part.end());
    return step;
  };
  StepTokens answer;
  for (std::uint32_t start = 0; start < tokens.size(); start += chunk) {
    const auto end = std::min<std::size_t>(tokens.size(), start + chunk);
    answer =
        chain.run(step_for(start, {tokens.begin() + start, tokens.begin() + static_cast<std::ptrdiff_t>(end)},
                           end == tokens.size()));
  }
  for (std::uint32_t i = 0; i < 20; ++i) {
    out.logits.push_back(chain.logits());
    out.tokens.push_back(answer.sampled.at(0).token);
    answer = chain.run(step_for(static_cast<std::uint32_t>(tokens.size()) + i, {out.tokens.back()}, true));
  }
  return out;
}

class Partition : public testing::TestWithParam<Sampling> {};

TEST_P(Partition, NeverChangesABit) {
  Chain one({{0, 5}}, 1);
  const auto expected = generate(one, 100, GetParam(), false);
  for (const std::uint32_t chunk : {1U, 3U, 7U, 16U, 64U, 100U}) {
    Chain three({{0, 2}, {2, 4}, {4, 5}}, 1);
    EXPECT_EQ(generate(three, chunk, GetParam(), false), expected) << "chunk " << chunk;
  }
  Chain crowded({{0, 1}, {1, 3}, {3, 5}}, 1);
  EXPECT_EQ(generate(crowded, 13, GetParam(), true), expected) << "with another sequence in the batch";
  Chain threads({{0, 5}}, 3);
  EXPECT_EQ(generate(threads, 50, GetParam(), false), expected) << "with three threads";
}

INSTANTIATE_TEST_SUITE_P(Samplings, Partition, testing::Values(Sampling{}, Sampling{0.9F, 0.8F, 17}),
                         [](const auto& which) { return which.param.temperature > 0 ? "seeded" : "greedy"; });

TEST(Stage, GreedyOutputVaries) {
  Chain one({{0, 5}}, 1);
  const auto output = generate(one, 100, {}, false);
  EXPECT_GT(std::set<tokenizer::TokenId>(output.tokens.begin(), output.tokens.end()).size(), 3U);
}

TEST(Stage, LoadsOnlyItsOwnTensors) {
  Chain three({{0, 2}, {2, 4}, {4, 5}}, 1);
  EXPECT_FALSE(three.stage(0).weights().embedding.empty());
  EXPECT_TRUE(three.stage(0).weights().head.empty());
  EXPECT_TRUE(three.stage(1).weights().embedding.empty());
  EXPECT_TRUE(three.stage(1).weights().head.empty());
  EXPECT_FALSE(three.stage(2).weights().head.empty());
  EXPECT_EQ(three.stage(1).weights().layers.size(), 2U);
}

TEST(Stage, RefusesStepsThatCannotBe) {
  Chain one({{0, 5}}, 1);
  const std::atomic<bool> stop{false};
  StepTokens tokens;
  Step unknown{1, {}, {}, {{9, 0, 1, true}}, {4}, {}};
  EXPECT_FALSE(one.stage(0).run(unknown, tokens, stop).ok());
  Step admitted{2, {}, {{1, {}}}, {{1, 0, 1, true}}, {4}, {}};
  EXPECT_TRUE(one.stage(0).run(admitted, tokens, stop).ok());
  Step twice{3, {}, {{1, {}}}, {}, {}, {}};
  EXPECT_FALSE(one.stage(0).run(twice, tokens, stop).ok());
  Step gap{4, {}, {}, {{1, 5, 1, true}}, {4}, {}};
  EXPECT_FALSE(one.stage(0).run(gap, tokens, stop).ok());
  Step release{5, {1}, {}, {}, {}, {}};
  EXPECT_TRUE(one.stage(0).run(release, tokens, stop).ok());
  EXPECT_EQ(one.stage(0).cache().free_tokens(), one.stage(0).cache().capacity_tokens());
}

TEST(Weights, ShapesThatDoNotFitTheConfigAreNamed) {
  auto config = *load_config(tiny_directory());
  config.kv_lora = 17;
  const auto weights = load_weights(tiny_directory(), config, {0, 1}, [](auto, auto) { return true; });
  ASSERT_FALSE(weights.ok());
  EXPECT_NE(weights.error().message().find("kv_"), std::string::npos) << weights.error().message();
}

TEST(Weights, LoadingStopsWhenAsked) {
  const auto config = *load_config(tiny_directory());
  int calls = 0;
  const auto weights =
      load_weights(tiny_directory(), config, {0, 5}, [&](auto, auto) { return ++calls < 5; });
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.error().reason, "stopped");
  EXPECT_EQ(calls, 5);
}

}  // namespace
}  // namespace troika::native
