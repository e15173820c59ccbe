// The leader between agents, store, gateway and operators.
#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/control/status.hpp"
#include "tests/unit/daemon/leader_rig.hpp"

namespace troika::daemon {
namespace {

using namespace std::chrono_literals;
using protocol::StageState;

TEST(Leader, BringsAReplicaFromNothingToServing) {
  LeaderRig rig;
  auto [n1, n2] = rig.serve_a();
  EXPECT_EQ(rig.view("a").phase, policies::Phase::Serving);
  ASSERT_EQ(n1.line->sent[0].type, "welcome");  // before anything else
  const auto verify = n1.line->all<protocol::Verify>()[0];
  EXPECT_EQ(verify.term, Term{1});
  EXPECT_EQ(verify.manifest.files.size(), 1u);
  EXPECT_EQ(verify.manifest_digest.size(), 64u);
  const auto start1 = n1.line->all<protocol::StartStage>()[0];
  const auto start2 = n2.line->all<protocol::StartStage>()[0];
  EXPECT_EQ(start1.epoch, Epoch{1});
  EXPECT_EQ(start1.next_link, "n2:30100");
  EXPECT_EQ(start2.next_link, "n1:30100");  // the last one's is rank 0's
  EXPECT_EQ(start1.link_key.size(), 64u);
  EXPECT_EQ(start1.link_key, start2.link_key);
  EXPECT_EQ(start1.engine.layers, (std::vector<std::uint32_t>{2, 3}));
  ASSERT_FALSE(rig.routes.empty());
  const auto& route = rig.routes.back();
  ASSERT_EQ(route.targets.size(), 1u);
  EXPECT_EQ(route.targets[0].relay_address, "n1:7444");
  EXPECT_EQ(route.targets[0].kv_capacity, Tokens{4096});
  EXPECT_FALSE(route.draining);
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_EQ(rig.finished[0].verdict, Verdict::Ok);
  const auto stored = *rig.store().replicas();
  const auto a = std::find_if(stored.begin(), stored.end(), [](const auto& r) { return r.name == "a"; });
  ASSERT_NE(a, stored.end());
  EXPECT_TRUE(a->proven && a->desired_running);
  EXPECT_EQ(a->epoch, Epoch{1});
  EXPECT_EQ((*rig.store().epochs("a"))[0].proven_at == WallTime{}, false);
}

TEST(Leader, EachEpochHasItsOwnLinkKey) {
  LeaderRig rig;
  auto [n1, n2] = rig.serve_a();
  rig.leader().wish(0, protocol::Verb::Restart, "a");
  rig.event(n1, rig.report("a", 0, 1, StageState::Released));
  rig.event(n2, rig.report("a", 1, 1, StageState::Released));
  rig.finish_start(n1, n2, 2);
  const auto starts = n1.line->all<protocol::StartStage>();
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[1].epoch, Epoch{2});
  EXPECT_NE(starts[0].link_key, starts[1].link_key);
}

TEST(Leader, StageEventIsAcknowledgedOnceWrittenAndRepeatsAreHarmless) {
  LeaderRig rig;
  auto [n1, n2] = rig.serve_a();
  protocol::StageEvent event;
  event.event = "n2-boot-77";
  event.report = rig.report("a", 1, 1, StageState::Exited);
  event.report.exit = {true, 0, 9, false};
  event.report.findings = {finding(Code::STAGE_DIED, "n2", "a/1", "killed by signal 9")};
  EXPECT_TRUE(rig.say(n2, event));
  EXPECT_TRUE(rig.say(n2, event));
  int acks = 0;
  for (const auto& ack : n2.line->all<protocol::StageEventAck>())
    acks += ack.event == event.event;
  EXPECT_EQ(acks, 2);
  auto count = rig.store().database().prepare("SELECT count(*) FROM stage_events WHERE event = 'n2-boot-77'");
  ASSERT_TRUE(count.ok() && *count->step());
  EXPECT_EQ(count->integer(0), 1);
  EXPECT_EQ(rig.view("a").phase, policies::Phase::Stopping);
  EXPECT_TRUE(rig.routes.back().targets.empty());  // the gate was closed
  const auto incidents = *rig.incidents().list({});
  ASSERT_EQ(incidents.size(), 1u);
  EXPECT_EQ(incidents[0].subject, "replica a");
  EXPECT_TRUE(std::any_of(incidents[0].findings.begin(), incidents[0].findings.end(),
                          [](const Finding& f) { return f.code == Code::STAGE_DIED; }));
}

TEST(Leader, SecondSessionOfANodeReplacesTheFirst) {
  LeaderRig rig;
  const auto first = rig.connect("n1");
  const auto second = rig.connect("n1");
  EXPECT_TRUE(first.line->closed);
  EXPECT_FALSE(rig.say(first, protocol::Heartbeat{}));  // dropped
  EXPECT_TRUE(rig.say(second, protocol::Heartbeat{}));
  rig.leader().disconnected("n1", first.session);  // the old one's end means nothing
  EXPECT_TRUE(rig.leader().nodes().all().at("n1").line != nullptr);
  rig.leader().disconnected("n1", second.session);
  EXPECT_TRUE(rig.leader().nodes().all().at("n1").line == nullptr);
}

// Two machines with one name would take turns, each sweeping what the other runs.
TEST(Leader, SecondMachineWithANodesNameIsNotTakenWhileTheFirstIsHeard) {
  LeaderRig rig;
  const auto second = LeaderRig::hello_of("n1", "boot-of-another-machine");
  EXPECT_FALSE(rig.leader().name_taken(second, "10.0.0.9:4000"));
  auto first = rig.connect("n1");
  const auto why = rig.leader().name_taken(second, "10.0.0.9:4000");
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("n1:7444"), std::string::npos) << *why;
  EXPECT_NE(why->find("10.0.0.9:4000"), std::string::npos) << *why;
  EXPECT_FALSE(rig.leader().name_taken(LeaderRig::hello_of("n1", "boot-n1"), "x"))
      << "its own new connection";
  EXPECT_FALSE(rig.leader().name_taken(LeaderRig::hello_of("n2", "b"), "x")) << "another node";
  rig.pass(4s);
  rig.say(first, protocol::Heartbeat{});
  rig.pass(4s);
  EXPECT_TRUE(rig.leader().name_taken(second, "x")) << "heard 4 s ago";
  rig.pass(2s);
  EXPECT_FALSE(rig.leader().name_taken(second, "x")) << "silent: it may have been rebooted";
}

TEST(Leader, HeartbeatsAreAcknowledged) {
  LeaderRig rig;
  const auto n1 = rig.connect("n1");
  EXPECT_TRUE(rig.say(n1, protocol::Heartbeat{}));
  EXPECT_EQ(n1.line->all<protocol::HeartbeatAck>().size(), 1u);
}

TEST(Leader, TermIsAboveTheHighestThatAnAgentObeyed) {
  LeaderRig rig;
  EXPECT_EQ(*rig.store().term(), Term{1});
  const auto n1 = rig.connect("n1", {}, Term{40});
  EXPECT_EQ(*rig.store().term(), Term{41});
  EXPECT_EQ(n1.line->all<protocol::Welcome>().back().term, Term{41});
}

TEST(Leader, RestartAdoptsWhatRunsAndKeepsTheRoute) {
  LeaderRig rig;
  rig.serve_a();
  rig.routes.clear();
  rig.start();
  EXPECT_TRUE(rig.routes.empty());  // the gateway goes on as it was told last
  const auto n1 = rig.connect("n1", {rig.report("a", 0, 1, StageState::Ready)}, Term{1});
  const auto n2 = rig.connect("n2", {rig.report("a", 1, 1, StageState::Ready)}, Term{1});
  rig.pass(250ms);
  EXPECT_EQ(rig.view("a").phase, policies::Phase::Serving);
  EXPECT_EQ(rig.view("a").epoch, Epoch{1});
  EXPECT_TRUE(n1.line->all<protocol::StopStage>().empty());
  EXPECT_TRUE(n2.line->all<protocol::StopStage>().empty());
  EXPECT_TRUE(n1.line->all<protocol::StartStage>().empty());
  ASSERT_FALSE(rig.routes.empty());
  EXPECT_EQ(rig.routes.back().term, Term{2});
}

TEST(Leader, RefusalsReachWhoWaits) {
  LeaderRig rig;
  const auto n1 = rig.connect("n1");
  const auto n2 = rig.connect("n2");
  rig.leader().wish(7, protocol::Verb::Start, "a");
  rig.pass(250ms);
  rig.say(n1, protocol::Refusal{n1.line->last_id("verify"), "BUSY", "a verification runs"});
  rig.say(n2, protocol::Refusal{n2.line->last_id("verify"), "BUSY", "a verification runs"});
  rig.pass(250ms);
  ASSERT_EQ(rig.finished.size(), 1u);
  EXPECT_NE(rig.finished[0].verdict, Verdict::Ok);
  EXPECT_TRUE(std::any_of(rig.finished[0].findings.begin(), rig.finished[0].findings.end(),
                          [](const Finding& f) { return f.code == Code::CANNOT_TELL; }));
  EXPECT_TRUE(n1.line->all<protocol::StartStage>().empty());
}

TEST(Leader, StaleTermRefusalEndsTheSession) {
  LeaderRig rig;
  const auto n1 = rig.connect("n1");
  rig.say(n1, protocol::Refusal{999, "STALE_TERM", "term 9 is obeyed here"});
  EXPECT_TRUE(n1.line->closed);
}

TEST(Leader, UnreadableManifestStopsTheStartByName) {
  LeaderRig rig;
  ASSERT_TRUE(platform::write_file_durably(rig.config().model.manifest, "{").ok());
  rig.connect("n1");
  rig.connect("n2");
  rig.leader().wish(7, protocol::Verb::Start, "a");
  rig.pass(250ms);
  ASSERT_EQ(rig.finished.size(), 1u);
  ASSERT_FALSE(rig.finished[0].findings.empty());
  EXPECT_EQ(rig.finished[0].findings[0].code, Code::MANIFEST_INVALID);
}

TEST(Leader, UnknownAndMalformedMessagesAreAnswered) {
  LeaderRig rig;
  const auto n1 = rig.connect("n1");
  auto unknown = protocol::parse_envelope(R"({"v":[1,9],"type":"brand_new","id":5})");
  EXPECT_TRUE(rig.leader().received("n1", n1.session, *unknown));
  auto malformed = protocol::parse_envelope(R"({"v":[1,0],"type":"heartbeat","id":6,"facts":7,"stages":[]})");
  EXPECT_TRUE(rig.leader().received("n1", n1.session, *malformed));
  const auto refusals = n1.line->all<protocol::Refusal>();
  ASSERT_EQ(refusals.size(), 2u);
  EXPECT_EQ(refusals[0].code, "UNKNOWN_TYPE");
  EXPECT_EQ(refusals[0].re, 5u);
  EXPECT_EQ(refusals[1].code, "MALFORMED");
  EXPECT_NE(refusals[1].message.find("facts"), std::string::npos);
}

TEST(Leader, DrainEndsWhenTheGatewayHasNothingInFlight) {
  LeaderRig rig;
  auto [n1, n2] = rig.serve_a();
  rig.leader().wish(2, protocol::Verb::Drain, "a");
  EXPECT_TRUE(rig.routes.back().draining);
  EXPECT_TRUE(rig.routes.back().targets.empty());
  rig.leader().gateway_loads({{"a", Epoch{1}, 1}});
  EXPECT_EQ(rig.view("a").phase, policies::Phase::Draining);
  EXPECT_TRUE(n1.line->all<protocol::StopStage>().empty());
  rig.leader().gateway_loads({});
  EXPECT_EQ(rig.view("a").phase, policies::Phase::Stopping);
  EXPECT_EQ(n1.line->all<protocol::StopStage>().size(), 1u);
}

TEST(Leader, NothingIsDoneAboutWhatCannotBeWritten) {
  LeaderRig rig;
  const auto n1 = rig.connect("n1");
  const auto n2 = rig.connect("n2");
  ASSERT_TRUE(rig.store()
                  .database()
                  .execute("CREATE TRIGGER full BEFORE INSERT ON replicas BEGIN SELECT raise(ABORT, "
                           "'database or disk is full'); END")
                  .ok());
  rig.leader().wish(3, protocol::Verb::Start, "a");
  rig.pass(250ms);
  ASSERT_EQ(rig.broken.size(), 1u);
  EXPECT_NE(rig.broken[0].message().find("disk is full"), std::string::npos);
  EXPECT_TRUE(n1.line->all<protocol::Verify>().empty());
  EXPECT_TRUE(rig.finished.empty());
  EXPECT_FALSE(rig.say(n2, protocol::Heartbeat{}));  // it does nothing any more
}

TEST(Leader, EventThatCannotBeWrittenIsNotAcknowledged) {
  LeaderRig rig;
  auto [n1, n2] = rig.serve_a();
  const auto acks = n2.line->all<protocol::StageEventAck>().size();
  ASSERT_TRUE(rig.store()
                  .database()
                  .execute("CREATE TRIGGER full BEFORE INSERT ON stage_events BEGIN SELECT raise(ABORT, "
                           "'database or disk is full'); END")
                  .ok());
  rig.event(n2, rig.report("a", 1, 1, StageState::Exited));
  EXPECT_EQ(rig.broken.size(), 1u);
  EXPECT_EQ(n2.line->all<protocol::StageEventAck>().size(), acks);
}

TEST(Leader, ProgressForOperators) {
  LeaderRig rig;
  const auto n1 = rig.connect("n1");
  rig.connect("n2");
  rig.leader().wish(1, protocol::Verb::Start, "a");
  rig.pass(250ms);
  protocol::VerifyProgress progress;
  progress.request = n1.line->all<protocol::Verify>()[0].request;
  progress.files_done = 30;
  progress.files_total = 46;
  rig.say(n1, progress);
  EXPECT_EQ(rig.leader().progress("a"), "a: verifying, 30/46 files on n1, 0/0 files on n2");
}

TEST(Leader, ARoutedNodeThatCameBackElsewhereIsToldToTheGateway) {
  LeaderRig rig;
  rig.serve_a();
  const auto generation = rig.routes.back().generation;
  protocol::Hello hello;
  hello.cluster = "lab";
  hello.node = "n1";
  hello.boot_id = "boot-n1";
  hello.highest_term = Term{1};
  hello.highest_epochs = {{"a", Epoch{1}}};
  hello.stages = {rig.report("a", 0, 1, StageState::Ready)};
  hello.relay_address = "elsewhere:9";
  hello.link_address = "n1:30100";
  rig.leader().connected(std::make_shared<NotedLine>(), hello);
  ASSERT_FALSE(rig.routes.back().targets.empty());
  EXPECT_EQ(rig.routes.back().targets[0].relay_address, "elsewhere:9");
  EXPECT_GT(rig.routes.back().generation, generation);
}

TEST(Leader, StatusTellsAll) {
  LeaderRig rig;
  auto [n1, n2] = rig.serve_a();
  protocol::Heartbeat beat;
  beat.facts.memory_total = Bytes{1000};
  beat.stages = {rig.report("a", 0, 1, StageState::Ready)};
  rig.say(n1, beat);
  rig.pass(2s);
  RequestFailures failures(rig.incidents());
  GatewaySeat seat(rig.leader(), failures);
  const auto status = status_reply(rig.leader(), seat, rig.incidents(), 42);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->re, 42u);
  EXPECT_EQ(status->cluster, "lab");
  EXPECT_EQ(status->term, Term{1});
  ASSERT_EQ(status->replicas.size(), 2u);
  const auto& a = status->replicas[0];
  EXPECT_EQ(a.phase, "serving");
  EXPECT_TRUE(a.proven && a.routed);
  EXPECT_EQ(a.shards_proven, 6u);
  ASSERT_EQ(a.stages.size(), 2u);
  EXPECT_EQ(a.stages[0].stage, "a/0");
  EXPECT_EQ(a.stages[0].state, "ready");
  EXPECT_EQ(a.stages[0].pid, 100);
  EXPECT_EQ(a.stages[1].layers, (LayerRange{2, 5}));
  EXPECT_EQ(status->replicas[1].stages[0].state, "unknown");  // n3 never connected
  ASSERT_EQ(status->nodes.size(), 4u);
  EXPECT_TRUE(status->nodes[0].connected);
  EXPECT_EQ(status->nodes[0].facts.memory_total, Bytes{1000});
  EXPECT_EQ(status->nodes[0].heartbeat_age_seconds, 2);
  EXPECT_EQ(status->nodes[2].heartbeat_age_seconds, -1);
  EXPECT_FALSE(status->gateway.connected);
  EXPECT_EQ(status->gateway.targets.size(), 1u);
}

}  // namespace
}  // namespace troika::daemon
