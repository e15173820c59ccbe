#include <gtest/gtest.h>

#include <algorithm>

#include "engine/adapters/adapter.hpp"

namespace troika::adapters {
namespace {

const EngineAdapter& native() {
  return **adapter_for("native");
}

StagePlan plan(std::uint32_t rank = 1) {
  StagePlan p;
  p.stage = {"a", Rank{rank}};
  p.epoch = Epoch{7};
  p.model = "deepseek-v3-small";
  p.context_length = Tokens{4096};
  p.chunked_prefill = Tokens{512};
  p.max_running = 8;
  p.layers = {14, 14, 15};
  p.next_link = "10.0.2.1:30100";
  return p;
}

LocalFacts local() {
  LocalFacts l;
  l.cluster = "lab";
  l.program = "/usr/lib/troika/troika-stage";
  l.model_path = "/srv/model";
  l.api = "127.0.0.1:30000";
  l.link = "10.0.1.1:30100";
  l.kv_budget = Bytes{1u << 30};
  l.link_key_file = "/run/x/link.key";
  l.arguments = {"--threads", "2"};
  l.environment = {{"OMP_NUM_THREADS", "4"}};
  return l;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST(NativeAdapter, RendersTheContractsCommandLine) {
  const auto middle = native().render(plan(1), local());
  ASSERT_TRUE(middle.ok()) << middle.error().message();
  EXPECT_EQ(joined(middle->argv),
            "/usr/lib/troika/troika-stage --model /srv/model --replica a --rank 1 --ranks 3 --epoch 7 "
            "--layers 14:28 "
            "--cluster lab --served-model-name deepseek-v3-small --context-length 4096 --chunked-prefill 512 "
            "--max-running 8 --link-listen 10.0.1.1:30100 --link-next 10.0.2.1:30100 --link-key-file "
            "/run/x/link.key "
            "--kv-budget-bytes 1073741824 --threads 2");
  EXPECT_NE(std::find(middle->environment.begin(), middle->environment.end(), "OMP_NUM_THREADS=4"),
            middle->environment.end());
  const auto first = native().render(plan(0), local());
  EXPECT_NE(joined(first->argv).find("--layers 0:14 "), std::string::npos);
  EXPECT_NE(joined(first->argv).find("--api 127.0.0.1:30000"), std::string::npos);
  EXPECT_NE(joined(native().render(plan(2), local())->argv).find("--layers 28:43 "), std::string::npos);
}

TEST(NativeAdapter, OneRankHasNoLinks) {
  StagePlan one = plan(0);
  one.layers = {43};
  one.next_link.clear();
  const auto line = native().render(one, local());
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_EQ(joined(line->argv).find("--link"), std::string::npos);
}

TEST(NativeAdapter, RefusesWhatCouldBeMoreThanAFigureOrAName) {
  const auto refused = [](const std::function<void(StagePlan&)>& spoil) {
    StagePlan p = plan();
    spoil(p);
    EXPECT_FALSE(native().render(p, local()).ok());
  };
  for (const char* model : {"", "--api", "a b", "a\nb", "$(x)", "../../etc", "-x"})
    refused([&](StagePlan& p) { p.model = model; });
  for (const char* link : {"", "host", "host:", ":1", "host:0", "host:65536", "ho st:1", "-h:1", "h:1x"})
    refused([&](StagePlan& p) { p.next_link = link; });
  refused([](StagePlan& p) { p.stage.replica = "A/../b"; });
  refused([](StagePlan& p) { p.stage.rank = Rank{3}; });
  refused([](StagePlan& p) { p.epoch = Epoch{0}; });
  refused([](StagePlan& p) { p.layers = {14, 0, 29}; });
  refused([](StagePlan& p) { p.layers.assign(65, 1); });
  refused([](StagePlan& p) { p.context_length = Tokens{0}; });
  refused([](StagePlan& p) { p.max_running = 0; });
}

TEST(NativeAdapter, ReadsLogLinesOfItsOwnEpochOnly) {
  const auto read = [](const std::string& line) { return native().read_log_line(plan(0), line); };
  const auto progress = read("2026 troika-stage[a/0 e7]: loading 5000000000/9000000000");
  EXPECT_EQ(progress.kind, LogReading::Kind::Progress);
  EXPECT_EQ(progress.done.count, 5000000000u);
  EXPECT_EQ(progress.total.count, 9000000000u);
  EXPECT_EQ(read("troika-stage[a/0 e7]: ready rank=0 epoch=7 api=127.0.0.1:30000 kv_tokens=9").kind,
            LogReading::Kind::Ready);
  EXPECT_EQ(read("troika-stage[a/0 e6]: ready rank=0 epoch=6").kind, LogReading::Kind::Nothing);
  EXPECT_EQ(read("troika-stage[b/0 e7]: ready rank=0 epoch=7").kind, LogReading::Kind::Nothing);
  const auto failed = read("troika-stage[a/0 e7]: failed: no memory");
  EXPECT_EQ(failed.kind, LogReading::Kind::Failed);
  EXPECT_EQ(failed.text, "no memory");
  const auto other = read("troika-stage[a/0 e7]: link to rank 1 open");
  EXPECT_EQ(other.kind, LogReading::Kind::Nothing);
  EXPECT_EQ(other.text, "link to rank 1 open");
  EXPECT_TRUE(read("Segmentation fault").text.empty());
}

TEST(NativeAdapter, ReadsSettingsAndCounters) {
  const auto settings = native().read_settings(
      R"({"version":"x","model":"m","replica":"a","epoch":7,"context_length":4096,"chunked_prefill_size":512,)"
      R"("max_running_requests":8,"pp_size":3,"pp_layer_partition":[14,14,15],"max_total_num_tokens":1000})");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->model, "m");
  EXPECT_EQ(settings->epoch.count, 7u);
  EXPECT_EQ(settings->layers, (std::vector<std::uint32_t>{14, 14, 15}));
  EXPECT_EQ(settings->kv_capacity.count, 1000u);
  EXPECT_FALSE(native().read_settings("nope").ok());
  const std::string metrics =
      "# HELP x\ntroika_stage_generation_tokens_total_other 9\ntroika_stage_generation_tokens_total 41\n";
  EXPECT_EQ(native().generated_tokens(metrics), 41u);
  EXPECT_EQ(native().generated_tokens("troika_stage_generation_tokens_total{r=\"a\"} 1\n"
                                      "troika_stage_generation_tokens_total{r=\"b\"} 2e1\n"),
            21u);
  EXPECT_EQ(native().generated_tokens(""), std::nullopt);
}

TEST(NativeAdapter, RelaysOnlyWhatAGatewayUses) {
  EXPECT_TRUE(native().relays("POST", "/v1/chat/completions"));
  EXPECT_TRUE(native().relays("POST", "/v1/completions"));
  EXPECT_TRUE(native().relays("GET", "/v1/models"));
  EXPECT_FALSE(native().relays("GET", "/v1/completions"));
  EXPECT_FALSE(native().relays("GET", "/server_info"));
  EXPECT_FALSE(native().relays("POST", "/v1/completions/"));
}

TEST(Adapters, OtherKindsAreRefusedByName) {
  const auto other = adapter_for("sglang");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message().find("sglang"), std::string::npos);
}

}  // namespace
}  // namespace troika::adapters
