#include <algorithm>
#include <csignal>

#include "tests/cluster/cluster.hpp"

namespace troika::local {
namespace {

using demo::all_serve;
using demo::replica;
using demo::running_stages;
using demo::serves;
using protocol::Verb;

class Life : public ClusterTest {};

TEST_F(Life, AfterStopAndEndNothingIsLeft) {
  make();
  start();
  serve();
  EXPECT_EQ(running_stages(status()).size(), 6u);
  EXPECT_TRUE(ask().whole());
  const auto done = cluster_->command(Verb::Stop, "");
  ASSERT_TRUE(done.ok()) << done.error.message();
  EXPECT_EQ(done.reply->verdict, Verdict::Ok) << done.reply->text;
  EXPECT_TRUE(cluster_->running("troika-stage").empty());
  EXPECT_TRUE(cluster_->running("troika-keeper").empty());
  end();
}

TEST_F(Life, ARestartHasANewEpochAndTheOtherReplicaServesMeanwhile) {
  make();
  start();
  serve();
  const auto before = status();
  const auto done = cluster_->command(Verb::Restart, "a");
  ASSERT_TRUE(done.ok()) << done.error.message();
  const auto after = wait("a serves again", [](const auto& s) { return serves(s, "a"); });
  ASSERT_NE(replica(after, "a"), nullptr);
  EXPECT_EQ(replica(after, "a")->epoch, next(replica(before, "a")->epoch));
  EXPECT_EQ(replica(after, "b")->epoch, replica(before, "b")->epoch);
  EXPECT_TRUE(ask().whole());
  end();
}

TEST_F(Life, FailoverByTheOperatorMovesTheNextRequest) {
  make();
  start();
  serve();
  const std::string first = demo::routed(status());
  const std::string second = demo::other(status(), first);
  const auto done = cluster_->command(Verb::Failover, second);
  ASSERT_TRUE(done.ok()) << done.error.message();
  EXPECT_EQ(demo::routed(wait("the other is next", [&](const auto& s) { return demo::routed(s) == second; })),
            second);
  EXPECT_TRUE(ask().whole());
  end();
}

TEST_F(Life, AFlippedByteOfOneNodesCopyRefusesTheStartAndNamesNodeAndFile) {
  make();
  start();
  const std::string shard = "model-00003-of-00006.safetensors";
  const std::string path = cluster_->layout().node_model("n5") + "/" + shard;
  const auto bytes = file_size(path);
  ASSERT_TRUE(bytes.ok());
  ASSERT_TRUE(flip_byte(path, bytes->count - 100).ok());  // in the weights, not in the header
  const auto refused = cluster_->command(Verb::Start, "b");
  ASSERT_TRUE(refused.ok()) << refused.error.message();
  EXPECT_EQ(refused.reply->verdict, Verdict::Error);
  const auto names_it = [&](const std::vector<Finding>& findings, const std::string& good) {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& one) {
      return one.code == Code::HASH_MISMATCH && one.node == "n5" && one.subject == shard &&
             one.remedy.find("proven good copies: " + good) != std::string::npos;
    });
  };
  EXPECT_TRUE(names_it(refused.reply->findings, "n4, n6")) << refused.reply->text;
  const auto audit =
      cli::ask_audit(cluster_->address(), {}, [](const auto&) {}, patience(std::chrono::seconds{60}), {});
  ASSERT_TRUE(audit.ok()) << audit.error.message();
  EXPECT_EQ(audit.reply->nodes.size(), 6u);
  EXPECT_TRUE(names_it(audit.reply->findings, "n1, n2, n3, n4, n6"));
  EXPECT_TRUE(cluster_->running("troika-keeper").empty()) << "an engine was touched";
  EXPECT_EQ(replica(status(), "b")->epoch, Epoch{0});

  ASSERT_TRUE(flip_byte(path, bytes->count - 100).ok());
  serve();
  end();
}

}  // namespace
}  // namespace troika::local
