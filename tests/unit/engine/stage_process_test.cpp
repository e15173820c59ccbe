// What the supervisor sees of troika-stage: its log, its exit codes, its links.
#include "tests/unit/engine/stage_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>

#include "tests/unit/engine/temporary_directory.hpp"

namespace troika {
namespace {

const std::string kChat =
    R"({"messages":[{"role":"user","content":"Who decides? And what is a term, and an epoch, and a stage of a pipeline?"}],)"
    R"("temperature":0,"max_tokens":40,"ignore_eos":true})";

TEST(StageProcess, ThreeRanksAnswerLikeOne) {
  Replica one(1);
  ASSERT_TRUE(one.ready()) << one.stages[0]->log();
  Replica three(3, {"--chunked-prefill", "5", "--max-running", "2"});
  ASSERT_TRUE(three.ready()) << three.stages[0]->log() << three.stages[1]->log() << three.stages[2]->log();
  const auto expected = post(one.port(), "/v1/chat/completions", kChat);
  ASSERT_EQ(expected.status, 200) << expected.body;
  const auto got = post(three.port(), "/v1/chat/completions", kChat);
  EXPECT_EQ(got.json()["choices"], expected.json()["choices"]);
  EXPECT_EQ(got.json()["usage"], expected.json()["usage"]);
  EXPECT_EQ(got.json()["usage"]["completion_tokens"], 40);
  const std::string seeded =
      R"({"prompt":"The river was old","temperature":1.1,"top_p":0.9,"seed":5,"max_tokens":30})";
  EXPECT_EQ(post(three.port(), "/v1/completions", seeded).json()["choices"],
            post(one.port(), "/v1/completions", seeded).json()["choices"]);
}

TEST(StageProcess, SaysWhatTheSupervisorReads) {
  Replica three(3);
  ASSERT_TRUE(three.ready());
  const auto& first = three.stages[0]->log();
  EXPECT_NE(first.find("troika-stage[a/0 e7]: loading 0/"), std::string::npos) << first;
  EXPECT_NE(first.find("troika-stage[a/0 e7]: loaded layers=0:2 tensors="), std::string::npos) << first;
  EXPECT_NE(first.find("troika-stage[a/0 e7]: link to rank 1 open\n"), std::string::npos) << first;
  EXPECT_NE(first.find("troika-stage[a/0 e7]: link from rank 2 open\n"), std::string::npos) << first;
  EXPECT_NE(first.find("troika-stage[a/0 e7]: ready rank=0 epoch=7 api=127.0.0.1:"), std::string::npos)
      << first;
  EXPECT_NE(three.stages[1]->log().find("troika-stage[a/1 e7]: ready rank=1 epoch=7 api=- kv_tokens="),
            std::string::npos);
}

TEST(StageProcess, EndsWithZeroOnSigtermWhileServingAndWhileWaitingForPeers) {
  Replica one(1);
  ASSERT_TRUE(one.ready());
  RawConnection stream(one.port());
  stream.send(post_text("/v1/chat/completions",
                        R"({"stream":true,"messages":[{"role":"user","content":"x"}],"ignore_eos":true})"));
  ASSERT_TRUE(stream.read_until("delta"));
  one.stages[0]->signal(SIGTERM);
  EXPECT_EQ(one.stages[0]->wait(), 0);
  EXPECT_EQ(stream.read_all().find("[DONE]"), std::string::npos);

  Replica three(3);
  three.stages[1]->signal(SIGKILL);
  ASSERT_TRUE(three.stages[0]->wait_for_line("loaded layers"));
  three.stages[0]->signal(SIGTERM);
  EXPECT_EQ(three.stages[0]->wait(), 0);
}

// All are told at the same time; whichever ends first closes its links on the others, which must not take
// that for a failure. Stopped while the signals are sent, so that every rank has its own when it sees the
// first link end.
TEST(StageProcess, EveryRankEndsWithZeroWhenAllAreStoppedTogether) {
  for (int round = 0; round < 5; ++round) {
    Replica three(3);
    ASSERT_TRUE(three.ready());
    for (const int number : {SIGSTOP, SIGTERM, SIGCONT}) {
      for (const auto& stage : three.stages)
        stage->signal(number);
    }
    for (const auto& stage : three.stages)
      EXPECT_EQ(stage->wait(), 0) << stage->log();
  }
}

TEST(StageProcess, EveryRankFailsPromptlyWhenOneIsKilled) {
  for (std::size_t victim = 0; victim < 3; ++victim) {
    Replica three(3);
    ASSERT_TRUE(three.ready());
    three.stages[victim]->signal(SIGKILL);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(three.stages[victim]->wait(), 128 + SIGKILL);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(three.stages[rank]->wait(), 1);
      EXPECT_NE(three.stages[rank]->log().find("failed: lost the link"), std::string::npos);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  }
}

TEST(StageProcess, WrongUsageIsTwo) {
  const std::string model = tiny_model_directory();
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {},
           {"--bad"},
           {"--model", model},
           {"--model", model, "--api", "0.0.0.0:0"},
           {"--model", model, "--api", "127.0.0.1"},
           {"--model", model, "--api", "127.0.0.1:0", "--layers", "3:2"},
           {"--model", model, "--api", "127.0.0.1:0", "--layers", "0:4"},
           {"--model", model, "--api", "127.0.0.1:0", "--layers", "0:99"},
           {"--model", model, "--api", "127.0.0.1:0", "--context-length", "100000"},
           {"--model", model, "--api", "127.0.0.1:0", "--kv-budget-bytes", "1"},
           {"--model", model, "--api", "127.0.0.1:0", "--rank", "1"},
           {"--model", model, "--api", "127.0.0.1:0", "--ranks", "3", "--layers", "0:2"},
           {"--model", model, "--api", "127.0.0.1:0", "--replica", "A B"}}) {
    StageProcess stage(arguments);
    EXPECT_EQ(stage.wait(), 2) << testing::PrintToString(arguments) << stage.log();
  }
  StageProcess help({"--help"});
  EXPECT_EQ(help.wait(), 0);
  StageProcess version({"--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_EQ(version.log().rfind("troika-stage ", 0), 0U);
}

TEST(StageProcess, TheProductionModelIsRefusedByNameWithThree) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/config.json")
      << R"({"architectures":["DeepseekV4ForCausalLM"],"model_type":"deepseek_v4"})";
  StageProcess stage({"--model", directory.path(), "--api", "127.0.0.1:0"});
  EXPECT_EQ(stage.wait(), 3);
  EXPECT_NE(stage.log().find("failed: cannot run a model with model_type = \"deepseek_v4\""),
            std::string::npos)
      << stage.log();
}

TEST(StageProcess, ADamagedShardIsRefusedWithThree) {
  const TemporaryDirectory directory;
  std::filesystem::copy(tiny_model_directory(), directory.path(), std::filesystem::copy_options::recursive);
  std::filesystem::resize_file(directory.path() + "/model-00002-of-00004.safetensors", 5000);
  StageProcess stage({"--model", directory.path(), "--api", "127.0.0.1:0"});
  EXPECT_EQ(stage.wait(), 3);
  EXPECT_NE(stage.log().find("model-00002-of-00004.safetensors"), std::string::npos) << stage.log();
}

TEST(StageProcess, APeerOfAnotherEpochIsRefusedAndTheRightOneStillComes) {
  const auto ports = free_ports(2);
  const auto at = [&](std::size_t i) { return "127.0.0.1:" + std::to_string(ports[i]); };
  const auto arguments = [&](std::size_t rank, const std::string& epoch) {
    std::vector<std::string> out{"--model",         tiny_model_directory(),
                                 "--rank",          std::to_string(rank),
                                 "--ranks",         "2",
                                 "--epoch",         epoch,
                                 "--layers",        rank == 0 ? "0:3" : "3:5",
                                 "--link-listen",   at(rank),
                                 "--link-next",     at(1 - rank),
                                 "--link-key-file", link_key_path()};
    if (rank == 0) out.insert(out.end(), {"--api", "127.0.0.1:0"});
    return out;
  };
  StageProcess first(arguments(0, "8"));
  {
    StageProcess stale(arguments(1, "7"));
    ASSERT_TRUE(stale.wait_for_line("epoch 8 where 7 is expected")) << stale.log();
    ASSERT_TRUE(first.wait_for_line("epoch 7 where 8 is expected")) << first.log();
    stale.signal(SIGTERM);
    EXPECT_EQ(stale.wait(), 0);
  }
  StageProcess second(arguments(1, "8"));
  EXPECT_TRUE(first.wait_for_line("ready rank=0 epoch=8")) << first.log();
}

}  // namespace
}  // namespace troika
