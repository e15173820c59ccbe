// After SIGKILL of any one process: what belongs to a wanted epoch is adopted, everything else is swept.
#include <fmt/format.h>
#include <signal.h>

#include <iostream>

#include "cli/render.hpp"
#include "tests/cluster/cluster.hpp"

namespace troika::local {
namespace {

using demo::all_connected;
using demo::all_serve;
using demo::replica;
using demo::running_stages;
using demo::serves;

class Kill : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    make();
    start();
    serve();
  }

  // The stage's keeper: its parent.
  pid_t keeper_of(const std::string& stage) const {
    const pid_t pid = pid_of(stage);
    for (const Process& one : cluster_->running())
      if (one.id.pid == pid) return one.parent;
    return 0;
  }

  void expect_told_signal(const std::string& stage, int signal) const {
    const Status seen = cluster_->wait_until(
        "the true signal is told", [&] { return told(stage, "signal", signal); },
        patience(std::chrono::seconds{60}));
    EXPECT_TRUE(seen.ok()) << seen.error().message();
    const auto answer = cluster_->incidents();
    if (!seen.ok() && answer.ok())
      for (const auto& one : answer.reply->incidents)
        std::cout << cli::render_incident(one, {});
  }

  bool told(const std::string& stage, const std::string& key, std::int64_t value) const {
    const auto answer = cluster_->incidents();
    if (!answer.ok()) return false;
    for (const auto& incident : answer.reply->incidents)
      for (const Finding& one : incident.findings)
        if (one.code == Code::STAGE_DIED && one.subject == stage)
          for (const auto& [name, said] : one.evidence)
            if (name == key && said == EvidenceValue{value}) return true;
    return false;
  }

  // Replica a was started again, whole and once, and exactly one keeper a stage is there.
  void expect_restarted(const protocol::StatusReply& before) {
    const Epoch epoch = replica(before, "a")->epoch;
    const auto after = wait("a serves under a new epoch",
                            [&](const auto& s) { return all_serve(s) && replica(s, "a")->epoch > epoch; });
    ASSERT_NE(replica(after, "a"), nullptr);
    EXPECT_EQ(replica(after, "a")->epoch, next(epoch));
    EXPECT_EQ(replica(after, "b")->epoch, replica(before, "b")->epoch);
    EXPECT_EQ(cluster_->running("troika-stage").size(), 6u);
    EXPECT_EQ(cluster_->running("troika-keeper").size(), 6u);
    EXPECT_TRUE(ask().whole());
    end();
  }
};

TEST_F(Kill, TheLeaderDuringAStreamNobodyNotices) {
  const auto before = status();
  const auto stream = ClusterTest::stream(2000);
  kill(cluster_->leader());
  ASSERT_TRUE(cluster_->start_leader().ok());
  const auto after = wait("a new leader knows all", [&](const auto& s) {
    return s.leader_pid != before.leader_pid && all_connected(s) && all_serve(s) && s.gateway.connected;
  });
  EXPECT_EQ(running_stages(after), running_stages(before));
  EXPECT_EQ(after.gateway.pid, before.gateway.pid);
  EXPECT_GT(after.term, before.term);
  const auto outcome = stream->join();
  EXPECT_TRUE(outcome.whole()) << demo::described(outcome);
  EXPECT_TRUE(ask().whole());
  end();
}

TEST_F(Kill, WithoutALeaderTheGatewayGoesOn) {
  kill(cluster_->leader());
  const auto outcome = ask();
  EXPECT_TRUE(outcome.whole()) << demo::described(outcome);
  ASSERT_TRUE(cluster_->start_leader().ok());
  wait("a new leader knows all", [](const auto& s) { return all_connected(s) && all_serve(s); });
  end();
}

TEST_F(Kill, TheGatewayComesBack) {
  const auto before = status();
  kill(static_cast<pid_t>(before.gateway.pid));
  const auto after = wait("another gateway", [&](const auto& s) {
    return s.gateway.connected && s.gateway.pid != before.gateway.pid && !demo::routed(s).empty();
  });
  EXPECT_EQ(running_stages(after), running_stages(before));
  const auto outcome = ask();
  EXPECT_TRUE(outcome.whole()) << demo::described(outcome);
  end();
}

TEST_F(Kill, AnAgentItsStageIsAdoptedAndItsEndToldTruly) {
  const auto before = status();
  const pid_t stage = pid_of("a/1");
  kill(cluster_->agent("n2"));
  wait("the leader misses it", [](const auto& s) { return !all_connected(s); });
  EXPECT_TRUE(alive(stage));
  ASSERT_TRUE(cluster_->start_agent("n2").ok());
  const auto after = wait("adopted", [](const auto& s) { return all_connected(s) && all_serve(s); });
  EXPECT_EQ(running_stages(after), running_stages(before));
  kill(stage, SIGUSR2);
  expect_told_signal("a/1", SIGUSR2);
  expect_restarted(before);
}

// What ended while nobody listened is told once somebody does.
TEST_F(Kill, AStageWhileItsAgentIsAwayItsEndIsToldTruly) {
  const auto before = status();
  const pid_t stage = pid_of("a/1");
  kill(cluster_->agent("n2"));
  kill(stage, SIGUSR2);
  ASSERT_TRUE(cluster_->start_agent("n2").ok());
  expect_told_signal("a/1", SIGUSR2);
  expect_restarted(before);
}

TEST_F(Kill, AStageDuringAStreamEndsItWithAnErrorAndTheOtherReplicaServes) {
  // Whichever was proven first serves first; this test is about a.
  ASSERT_TRUE(cluster_->command(protocol::Verb::Failover, "a").ok());
  const auto before = wait("a is next", [](const auto& s) { return demo::routed(s) == "a"; });
  const auto stream = ClusterTest::stream(12000);
  kill(pid_of("a/1"));
  const auto outcome = stream->join();
  EXPECT_EQ(outcome.answer.error_code(), "upstream_truncated") << demo::described(outcome);
  EXPECT_FALSE(outcome.answer.done());
  wait("b is next", [](const auto& s) { return demo::routed(s) == "b"; });
  EXPECT_TRUE(ask().whole());
  expect_restarted(before);
}

TEST_F(Kill, AKeeperItsStageIsSweptAndTheReplicaStartedAgain) {
  const auto before = status();
  const pid_t stage = pid_of("a/2");
  const pid_t keeper = keeper_of("a/2");
  kill(keeper);
  expect_restarted(before);
  EXPECT_FALSE(alive(stage));
}

// A leader and an agent killed together, and the stage too: nothing that anyone remembers in memory is left.
TEST_F(Kill, LeaderAgentAndStageTogether) {
  const auto before = status();
  const pid_t stage = pid_of("a/0");
  kill(cluster_->leader());
  kill(cluster_->agent("n1"));
  kill(stage);
  ASSERT_TRUE(cluster_->start_leader().ok());
  ASSERT_TRUE(cluster_->start_agent("n1").ok());
  expect_restarted(before);
}

}  // namespace
}  // namespace troika::local
