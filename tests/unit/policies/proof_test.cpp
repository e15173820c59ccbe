// Judging a probe. Modes 43, 68, 69, 85; case D34.
#include "policies/proof.hpp"

#include <gtest/gtest.h>

namespace troika::policies {
namespace {

const EngineSettings kPlanned{"deepseek-v4-flash", Tokens{12288}, Tokens{4096}, 8, {14, 14, 15}};

ProbeFacts good() {
  ProbeFacts facts;
  facts.completed = true;
  facts.completion_tokens = Tokens{8};
  facts.counter_advance = Tokens{8};
  facts.effective = kPlanned;
  return facts;
}
std::vector<Finding> judge(const ProbeFacts& facts) {
  return judge_probe({"a", Rank{0}}, "n1", kPlanned, facts);
}

TEST(Proof, CompletionWithTokensAndACounterThatMovedIsProof) {
  EXPECT_TRUE(judge(good()).empty());
  ProbeFacts more = good();
  more.counter_advance = Tokens{20};  // others generated meanwhile
  EXPECT_TRUE(judge(more).empty());
}

TEST(Proof, D34_NoCompletionIsNotReadyWhateverElseAnswers) {
  ProbeFacts facts = good();
  facts.completed = false;
  facts.error = "timed out after 60 s";
  const auto findings = judge(facts);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, Code::NOT_READY);
  EXPECT_NE(findings[0].message.find("timed out"), std::string::npos);
}

TEST(Proof, CompletionWithoutATokenIsNotReady) {
  ProbeFacts facts = good();
  facts.completion_tokens = Tokens{0};
  ASSERT_EQ(judge(facts).size(), 1u);
  EXPECT_EQ(judge(facts)[0].code, Code::NOT_READY);
}

TEST(Proof, CounterThatDidNotAdvanceByTheTokensIsStuck) {
  ProbeFacts facts = good();
  facts.counter_advance = Tokens{7};
  ASSERT_EQ(judge(facts).size(), 1u);
  EXPECT_EQ(judge(facts)[0].code, Code::GENERATION_STUCK);
}

TEST(Proof, Mode68_EachSettingThatDiffersIsNamedWithBothValues) {
  const auto differ = [](auto change) {
    ProbeFacts facts = good();
    change(facts.effective);
    return judge(facts);
  };
  const std::vector<std::pair<std::string, std::vector<Finding>>> cases{
      {"model", differ([](EngineSettings& s) { s.model = "other"; })},
      {"context_length", differ([](EngineSettings& s) { s.context_length = Tokens{4096}; })},
      {"chunked_prefill", differ([](EngineSettings& s) { s.chunked_prefill = Tokens{2048}; })},
      {"max_running", differ([](EngineSettings& s) { s.max_running = 4; })},
      {"layers", differ([](EngineSettings& s) {
         s.layers = {15, 14, 14};
       })},
  };
  for (const auto& [setting, findings] : cases) {
    ASSERT_EQ(findings.size(), 1u) << setting;
    EXPECT_EQ(findings[0].code, Code::EFFECTIVE_CONFIG_DIFF);
    EXPECT_EQ(findings[0].subject, setting);
    EXPECT_EQ(findings[0].evidence.size(), 2u);
  }
  EXPECT_EQ(differ([](EngineSettings& s) { s = {}; }).size(), 5u);
}

}  // namespace
}  // namespace troika::policies
