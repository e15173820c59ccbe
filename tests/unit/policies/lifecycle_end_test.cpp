// Failures, stops, the proof of release, the breaker.
#include <gtest/gtest.h>

#include <algorithm>

#include "rig.hpp"

namespace troika::policies::test {
namespace {

class End : public ::testing::Test {
 protected:
  End() {
    rig.lead();
    rig.connect_all();
  }
  void fail(const std::string& replica, std::uint32_t rank = 2) {
    rig.report(replica, rank, StageFact::Exited,
               {finding(Code::STAGE_DIED, rig.node_of(replica, rank), replica + "/x", "killed by signal 9")});
  }
  Rig rig;
};

// Modes 49, 50, 60; case D31: REPLICA_FAILED at once, not when the head notices.
TEST_F(End, AnyRanksExitEndsTheEpochGateFirst) {
  rig.to_serving("a");
  fail("a");
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  ASSERT_EQ(rig.got<SendStop>().size(), 3u) << "never one rank alone";
  EXPECT_LT(first_index<SetRoute>(rig.last), first_index<SendStop>(rig.last));
  EXPECT_TRUE(rig.route.empty());
  EXPECT_TRUE(has(rig.view("a").findings, Code::REPLICA_FAILED));
  EXPECT_TRUE(has(rig.view("a").findings, Code::STAGE_DIED));
}

TEST_F(End, RequestedExitIsAFailureToo) {
  rig.to_serving("a");
  ReportedStage r = Rig::reported("a", 1, Epoch{1}, StageFact::Exited);
  r.exit_requested = true;
  rig.step(StageReported{"n2", r});
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
}

TEST_F(End, RestartWaitsForTheReleaseOfEveryRankThenBacksOff) {
  rig.to_serving("a");
  fail("a");
  rig.report("a", 0, StageFact::Absent);
  rig.report("a", 1, StageFact::Exited);
  rig.report("a", 2, StageFact::NotReleased, {finding(Code::NOT_RELEASED, "n3", "n3", "memory is not back")});
  rig.pass(30s);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  rig.report("a", 1, StageFact::Absent);
  rig.report("a", 2, StageFact::Absent);
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
  rig.pass(1s);
  EXPECT_EQ(rig.phase("a"), Phase::Stopped) << "backoff";
  rig.pass(1s);
  EXPECT_EQ(rig.phase("a"), Phase::Verifying) << "verified again before it is started again";
  rig.verify("a");
  EXPECT_EQ(rig.view("a").epoch, Epoch{2});
}

Finding died(const std::string& node, const std::string& stage, std::int64_t signal, bool known = true,
             bool follows = false) {
  return finding(Code::STAGE_DIED, node, stage, node + " says why", {},
                 {{"code", std::int64_t{1}}, {"signal", signal}, {"known", known}, {"follows", follows}});
}

// The neighbours of a stage that was killed lose their links, and tell of that first.
TEST_F(End, TheIncidentIsNamedAfterTheNearestCauseWhoeverSpeaksFirst) {
  rig.to_serving("a");
  rig.report("a", 0, StageFact::Exited, {died("n1", "a/0", 0, true, true)});
  ASSERT_EQ(rig.got<OpenIncident>().size(), 1u);
  EXPECT_EQ(rig.got<OpenIncident>()[0].title, "replica a (epoch 1) failed while serving: n1 says why");
  rig.report("a", 1, StageFact::Exited, {died("n2", "a/1", 9)});
  ASSERT_EQ(rig.got<NoteIncident>().size(), 1u);
  EXPECT_EQ(rig.got<NoteIncident>()[0].title, "replica a (epoch 1) failed while serving: n2 says why");
  EXPECT_EQ(rig.view("a").reason, "replica a (epoch 1) failed while serving: n2 says why");
  rig.report("a", 2, StageFact::Exited, {died("n3", "a/2", 0, true, true)});
  ASSERT_EQ(rig.got<NoteIncident>().size(), 1u);
  EXPECT_EQ(rig.got<NoteIncident>()[0].title, "") << "farther away";
}

// Of causes that are heard together the nearest is named too.
TEST_F(End, OfSeveralCausesTheNearestIsNamed) {
  rig.to_serving("a");
  ReportedStage killed = Rig::reported("a", 1, Epoch{1}, StageFact::Exited);
  killed.findings = {died("n2", "a/1", 0, true, true), died("n2", "a/1", 0, false)};
  killed.findings[1].message = "its keeper was killed";
  rig.step(StageReported{"n2", killed});
  EXPECT_EQ(rig.got<OpenIncident>()[0].title,
            "replica a (epoch 1) failed while serving: its keeper was killed");
}

// The agent was away when its stage died; it comes back, lists nothing any more, and hands over what it kept.
TEST_F(End, TrueEndThatIsToldAfterTheReleaseStillGoesIntoTheIncident) {
  rig.to_serving("a");
  rig.disconnect("n2");
  fail("a");
  rig.report("a", 0, StageFact::Absent);
  rig.report("a", 2, StageFact::Absent);
  rig.connect("n2");
  EXPECT_EQ(rig.phase("a"), Phase::Stopped) << "all is released";
  const Finding truth = finding(Code::STAGE_DIED, "n2", "a/1", "killed by signal 12");
  rig.report("a", 1, StageFact::Exited, {truth});
  ASSERT_EQ(rig.got<NoteIncident>().size(), 1u);
  EXPECT_EQ(rig.got<NoteIncident>()[0].findings, std::vector<Finding>{truth});
  rig.report("a", 1, StageFact::Absent, {truth});
  EXPECT_TRUE(rig.got<NoteIncident>().empty()) << "once";
  rig.pass(2s);
  EXPECT_EQ(rig.phase("a"), Phase::Verifying) << "the late word is in nobody's way";
}

TEST_F(End, UnansweredStopIsSentAgain) {
  rig.to_serving("a");
  fail("a");
  rig.report("a", 0, StageFact::Absent);
  rig.pass(4s);
  EXPECT_EQ(Rig::of<SendStop>(rig.all).size(), 3u);
  rig.pass(1s);
  EXPECT_EQ(Rig::of<SendStop>(rig.all).size(), 5u) << "not to the rank that is gone";
}

// Modes 33, 61; conclusion 9: one automatic restart, then stop and keep evidence.
TEST_F(End, SecondFailureWithinTheWindowOpensTheBreakerWithBothEvidences) {
  rig.wish(Wish::Start, "a", 7);
  rig.verify("a");
  rig.report("a", 1, StageFact::Exited, {finding(Code::STAGE_DIED, "n2", "a/1", "first death")});
  rig.recover("a");
  EXPECT_EQ(rig.phase("a"), Phase::Serving);
  EXPECT_EQ(rig.got<CloseIncident>().size(), 1u);
  rig.pass(10min);
  rig.report("a", 2, StageFact::Exited, {finding(Code::STAGE_DIED, "n3", "a/2", "second death")});
  EXPECT_TRUE(rig.view("a").breaker_open);
  ASSERT_EQ(rig.got<OpenIncident>().size(), 1u);
  const std::vector<Finding> evidence = rig.got<OpenIncident>()[0].findings;
  EXPECT_TRUE(has(evidence, Code::BREAKER_OPEN));
  for (const char* death : {"first death", "second death"})
    EXPECT_TRUE(
        std::any_of(evidence.begin(), evidence.end(), [&](const Finding& f) { return f.message == death; }));
  rig.release_all("a");
  EXPECT_EQ(rig.phase("a"), Phase::Failed);
  rig.pass(2h);
  EXPECT_EQ(rig.phase("a"), Phase::Failed);
}

TEST_F(End, FailuresFurtherApartThanTheWindowAreRestartedEachTime) {
  rig.to_serving("a");
  for (int i = 0; i < 3; ++i) {
    fail("a");
    EXPECT_FALSE(rig.view("a").breaker_open);
    rig.recover("a");
    EXPECT_EQ(rig.phase("a"), Phase::Serving);
    rig.pass(31min);
  }
}

TEST_F(End, OperatorsStartClosesTheBreakerAndForgetsTheAttempts) {
  rig.to_serving("a");
  fail("a");
  rig.recover("a");
  fail("a");
  rig.release_all("a");
  ASSERT_EQ(rig.phase("a"), Phase::Failed);
  rig.wish(Wish::Start, "a");
  EXPECT_FALSE(rig.view("a").breaker_open);
  rig.verify("a");
  rig.report_all("a", StageFact::Ready);
  rig.probe("a");
  fail("a");
  EXPECT_FALSE(rig.view("a").breaker_open);
}

TEST_F(End, SilentNodeIsLostAfterItsPatienceAndOnlyThen) {
  rig.to_serving("a");
  rig.connected["n2"] = false;  // no more heartbeats, the session stays
  rig.pass(14s);
  EXPECT_EQ(rig.phase("a"), Phase::Serving);
  rig.pass(1s);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  EXPECT_TRUE(has(rig.view("a").findings, Code::NODE_LOST));
}

// Mode 86: the other side of a partition may still run.
TEST_F(End, LostNodesReplicaIsNotStartedAnewBeforeThatNodeCameBackClean) {
  rig.to_serving("a");
  rig.disconnect("n2");
  rig.pass(15s);
  ASSERT_EQ(rig.phase("a"), Phase::Stopping);
  rig.report("a", 0, StageFact::Absent);
  rig.report("a", 2, StageFact::Absent);
  rig.pass(1h);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  rig.connect("n2", {Rig::reported("a", 1, Epoch{1}, StageFact::Ready)});
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  ASSERT_EQ(rig.got<SendStop>().size(), 1u);
  EXPECT_EQ(rig.got<SendStop>()[0].node, "n2");
  rig.report("a", 1, StageFact::Absent);
  rig.pass(2s);
  EXPECT_EQ(rig.phase("a"), Phase::Verifying);
}

TEST_F(End, ShortDisconnectIsNoFailure) {
  rig.to_serving("a");
  rig.disconnect("n2");
  rig.pass(14s);
  rig.connect("n2", {Rig::reported("a", 1, Epoch{1}, StageFact::Ready)});
  rig.pass(1min);
  EXPECT_EQ(rig.phase("a"), Phase::Serving);
}

TEST_F(End, NodeThatComesBackWithoutItsStageIsAFailure) {
  rig.to_serving("a");
  rig.disconnect("n2");
  rig.connect("n2");
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
}

// Mode 65.
TEST_F(End, RebootedNodeIsNamed) {
  rig.to_serving("a");
  rig.connect("n2", {}, "boot-2");
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  EXPECT_TRUE(has(rig.view("a").findings, Code::NODE_REBOOTED));
}

TEST_F(End, SuspendedLeaderBlamesNobody) {
  rig.to_serving("a");
  rig.now += 10min;
  rig.step(Tick{});
  EXPECT_EQ(rig.phase("a"), Phase::Serving);
  rig.disconnect("n2");
  rig.now += 10min;
  rig.step(Tick{});
  EXPECT_EQ(rig.phase("a"), Phase::Serving);
  rig.pass(16s);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping) << "watched again, the node has its patience and no more";
}

// Mode 62: stop is not done before it is seen to be done.
TEST_F(End, StopIsDoneWhenEveryRankIsSeenToBeGone) {
  rig.to_serving("a");
  rig.wish(Wish::Stop, "a", 9);
  EXPECT_LT(first_index<SetRoute>(rig.last), first_index<SendStop>(rig.last));
  rig.report("a", 0, StageFact::Absent);
  rig.report("a", 1, StageFact::Absent);
  EXPECT_FALSE(rig.finished(9).has_value());
  rig.report("a", 2, StageFact::Absent);
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
  ASSERT_TRUE(rig.finished(9).has_value());
  EXPECT_EQ(rig.finished(9)->verdict, Verdict::Ok);
  rig.pass(1h);
  EXPECT_EQ(rig.phase("a"), Phase::Stopped) << "stays stopped";
}

TEST_F(End, StopThatIsNotReleasedSaysSo) {
  rig.to_serving("a");
  rig.wish(Wish::Stop, "a", 9);
  rig.report("a", 0, StageFact::Absent);
  rig.report("a", 1, StageFact::Absent);
  rig.report("a", 2, StageFact::NotReleased, {finding(Code::NOT_RELEASED, "n3", "n3", "memory is not back")});
  rig.pass(61s);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  ASSERT_TRUE(rig.finished(9).has_value());
  EXPECT_EQ(rig.finished(9)->verdict, Verdict::Error);
  EXPECT_TRUE(has(rig.finished(9)->findings, Code::NOT_RELEASED));
}

TEST_F(End, ReleaseThatCouldNotBeLookedForIsNotTold) {
  rig.to_serving("a");
  rig.wish(Wish::Stop, "a", 9);
  rig.report("a", 0, StageFact::Absent);
  rig.report("a", 1, StageFact::Absent);
  rig.report("a", 2, StageFact::NotReleased, {finding(Code::CANNOT_TELL, "n3", "release", "no /proc")});
  rig.pass(61s);
  EXPECT_EQ(rig.finished(9)->verdict, Verdict::CannotTell);
}

TEST_F(End, StopWithANodeAwayNamesItAndSweepsWhenItReturns) {
  rig.to_serving("a");
  rig.disconnect("n3");
  rig.wish(Wish::Stop, "a", 9);
  rig.report("a", 0, StageFact::Absent);
  rig.report("a", 1, StageFact::Absent);
  rig.pass(61s);
  ASSERT_TRUE(rig.finished(9).has_value());
  EXPECT_TRUE(has(rig.finished(9)->findings, Code::NODE_LOST));
  EXPECT_EQ(rig.finished(9)->findings[0].node, "n3");
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  rig.connect("n3", {Rig::reported("a", 2, Epoch{1}, StageFact::Ready)});
  EXPECT_EQ(rig.got<SendStop>().size(), 1u);
  rig.report("a", 2, StageFact::Absent);
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
}

TEST_F(End, StopWinsOverAnAutomaticRestart) {
  rig.to_serving("a");
  fail("a");
  rig.wish(Wish::Stop, "a");
  rig.release_all("a");
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
  EXPECT_EQ(rig.got<CloseIncident>().size(), 1u);
  rig.pass(1min);
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
}

TEST_F(End, DrainLetsRequestsFinishThenStops) {
  rig.to_serving("a");
  rig.wish(Wish::Drain, "a", 9);
  EXPECT_EQ(rig.phase("a"), Phase::Draining);
  EXPECT_EQ(rig.routed(), Names{"a draining"});
  rig.pass(5min);
  rig.step(GatewayDrained{"a", Epoch{7}});
  EXPECT_EQ(rig.phase("a"), Phase::Draining) << "another epoch";
  rig.step(GatewayDrained{"a", Epoch{1}});
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  rig.release_all("a");
  EXPECT_EQ(rig.finished(9)->verdict, Verdict::Ok);
}

TEST_F(End, DrainHasALimitAndSaysWhatItCut) {
  rig.to_serving("a");
  rig.wish(Wish::Drain, "a", 9);
  rig.pass(10min);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  rig.release_all("a");
  EXPECT_EQ(rig.finished(9)->verdict, Verdict::Warning);
}

TEST_F(End, DeathWhileDrainingEndsItAndIsNotRestarted) {
  rig.to_serving("a");
  rig.wish(Wish::Drain, "a", 9);
  fail("a");
  EXPECT_TRUE(rig.route.empty());
  rig.release_all("a");
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
  EXPECT_EQ(rig.finished(9)->verdict, Verdict::Error);
  rig.pass(1min);
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
}

TEST_F(End, FloodOfFindingsIsBounded) {
  rig.to_serving("a");
  std::vector<Finding> flood;
  for (int i = 0; i < 10000; ++i)
    flood.push_back(finding(Code::STAGE_DIED, "n1", "a/0", "line " + std::to_string(i)));
  rig.report("a", 0, StageFact::Exited, flood);
  EXPECT_LE(rig.view("a").findings.size(), 70u);
}

}  // namespace
}  // namespace troika::policies::test
