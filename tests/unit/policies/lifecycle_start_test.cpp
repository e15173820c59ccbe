// From stopped to serving.
#include <gtest/gtest.h>

#include "rig.hpp"

namespace troika::policies::test {
namespace {

class Start : public ::testing::Test {
 protected:
  Start() { rig.lead(); }
  Rig rig;
};

TEST_F(Start, WaitsUntilAllNodesOfTheReplicaAreConnected) {
  rig.connect("n1");
  rig.connect("n2");
  rig.wish(Wish::Start, "a");
  EXPECT_TRUE(rig.got<SendVerify>().empty());
  rig.connect("n3");
  EXPECT_EQ(rig.got<SendVerify>().size(), 3u);
  EXPECT_EQ(rig.phase("a"), Phase::Verifying);
}

TEST_F(Start, TouchesNoEngineBeforeEveryNodeIsProven) {
  rig.connect_all();
  rig.wish(Wish::Start, "a");
  rig.step(VerifyFinished{"n1", rig.verify_requests["n1"], {}});
  rig.step(VerifyFinished{"n2", rig.verify_requests["n2"], {}});
  EXPECT_TRUE(Rig::of<SendStart>(rig.all).empty());
  rig.step(VerifyFinished{"n3", rig.verify_requests["n3"], {}});
  EXPECT_EQ(rig.got<SendStart>().size(), 3u);
}

TEST_F(Start, WritesTheEpochDownBeforeAnyAgentHearsOfIt) {
  rig.connect_all();
  rig.to_starting("a");
  const std::size_t persisted = first_index<PersistReplica>(rig.last);
  ASSERT_LT(persisted, first_index<SendStart>(rig.last));
  EXPECT_EQ(std::get<PersistReplica>(rig.last[persisted]).replica.epoch, Epoch{1});
  for (const SendStart& start : rig.got<SendStart>())
    EXPECT_EQ(start.epoch, Epoch{1});
}

TEST_F(Start, EpochIsAboveEveryOneHeardFromAnyAgent) {
  rig.connect_all();
  rig.connect("n5", {}, "boot-1", {}, {{"a", Epoch{41}}});  // not even one of its nodes
  rig.to_starting("a");
  EXPECT_EQ(rig.view("a").epoch, Epoch{42});
}

TEST_F(Start, VerificationErrorEndsInFailedWithAllFindingsAndNoEngineTouched) {
  rig.connect_all();
  rig.wish(Wish::Start, "a", 7);
  rig.verify("a", {finding(Code::HASH_MISMATCH, "n2", "model-00007-of-00046.safetensors", "differs")});
  EXPECT_EQ(rig.phase("a"), Phase::Failed);
  EXPECT_TRUE(Rig::of<SendStart>(rig.all).empty());
  ASSERT_TRUE(rig.finished(7).has_value());
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Error);
  EXPECT_TRUE(has(rig.finished(7)->findings, Code::HASH_MISMATCH));
  EXPECT_EQ(rig.got<OpenIncident>().size(), 1u);
  EXPECT_FALSE(rig.view("a").breaker_open);
  EXPECT_EQ(rig.stored["a"].failures, 0u) << "not a crash: no automatic restart is spent";
  rig.pass(60s);
  EXPECT_EQ(rig.phase("a"), Phase::Failed) << "only an operator tries again";
  rig.wish(Wish::Start, "a");
  EXPECT_EQ(rig.phase("a"), Phase::Verifying);
}

TEST_F(Start, CannotTellNeverCountsAsGood) {
  rig.connect_all();
  rig.wish(Wish::Start, "a", 7);
  rig.verify("a", {finding(Code::CANNOT_TELL, "n2", "memory", "could not read /proc/meminfo")});
  EXPECT_EQ(rig.phase("a"), Phase::Failed);
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::CannotTell);
}

TEST_F(Start, ABadFileIsToldWithWhoHasAGoodCopy) {
  rig.connect_all();
  rig.wish(Wish::Start, "a", 7);
  const std::string digest(64, 'd');
  const auto bad = finding(Code::HASH_MISMATCH, "n2", "shard-7", "other bytes", "fetch it");
  rig.step(VerifyFinished{"n2", rig.verify_requests["n2"], {bad}, {"n2", digest, {"shard-7"}, true}});
  rig.step(VerifyFinished{"n1", rig.verify_requests["n1"], {}, {"n1", digest, {}, true}});
  rig.step(VerifyFinished{"n3", rig.verify_requests["n3"], {}, {"n3", digest, {}, true}});
  rig.pass(1s);
  ASSERT_TRUE(rig.finished(7).has_value());
  ASSERT_EQ(rig.finished(7)->findings.size(), 1u);
  EXPECT_EQ(rig.finished(7)->findings[0].remedy, "fetch it; proven good copies: n1, n3");
}

TEST_F(Start, WarningsDoNotStopAStartAndAreKept) {
  rig.connect_all();
  rig.wish(Wish::Start, "a", 7);
  rig.verify("a", {finding(Code::ADDR_NOT_PERSISTENT, "n2", "enp1", "not persistent")});
  EXPECT_EQ(rig.phase("a"), Phase::Starting);
  rig.report_all("a", StageFact::Ready);
  rig.probe("a");
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Warning);
}

TEST_F(Start, NodeThatReconnectsWhileVerifyingProvesAnew) {
  rig.connect_all();
  rig.wish(Wish::Start, "a");
  const std::uint64_t before = rig.verify_requests["n1"];
  rig.step(VerifyFinished{"n1", before, {}});
  rig.disconnect("n1");
  rig.connect("n1", {}, "boot-2");
  EXPECT_NE(rig.verify_requests["n1"], before);
  rig.step(VerifyFinished{"n1", before, {}});  // late, void
  rig.step(VerifyFinished{"n2", rig.verify_requests["n2"], {}});
  rig.step(VerifyFinished{"n3", rig.verify_requests["n3"], {}});
  EXPECT_EQ(rig.phase("a"), Phase::Verifying);
  rig.step(VerifyFinished{"n1", rig.verify_requests["n1"], {}});
  EXPECT_EQ(rig.phase("a"), Phase::Starting);
}

TEST_F(Start, RequestsAreUniqueAcrossLeaders) {
  rig.connect_all();
  rig.wish(Wish::Start, "a");
  Rig next = rig.successor();
  next.connect_all();
  next.wish(Wish::Start, "a");
  for (const auto& [node, request] : next.verify_requests)
    EXPECT_NE(request, rig.verify_requests[node]);
}

// Mode 52: slow is not stuck.
TEST_F(Start, SlowLoadIsNotStuckForAsLongAsItProgresses) {
  rig.connect_all();
  rig.to_loading("a");
  for (std::uint64_t i = 1; i <= 6; ++i) {
    rig.pass(19min);
    ReportedStage r = Rig::reported("a", 1, Epoch{1}, StageFact::Loading);
    r.progress = Bytes{i};
    rig.step(StageReported{"n2", r});
  }
  EXPECT_EQ(rig.phase("a"), Phase::Loading);
  rig.pass(20min);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  EXPECT_TRUE(has(rig.view("a").findings, Code::START_FAILED));
}

TEST_F(Start, VerificationWithoutProgressCouldNotTell) {
  rig.connect_all();
  rig.wish(Wish::Start, "a", 7);
  rig.pass(19min);
  rig.step(VerifyProgressed{"n3", rig.verify_requests["n3"], Bytes{1}});
  rig.pass(19min);
  EXPECT_EQ(rig.phase("a"), Phase::Verifying);
  rig.pass(1min);
  EXPECT_EQ(rig.phase("a"), Phase::Failed);
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::CannotTell);
}

TEST_F(Start, ProgressOnlyWhenEveryRankGotThere) {
  rig.connect_all();
  rig.to_starting("a");
  rig.report("a", 0, StageFact::Loading);
  rig.report("a", 1, StageFact::Ready);
  rig.report("a", 2, StageFact::Starting);
  EXPECT_EQ(rig.phase("a"), Phase::Starting);
  rig.report("a", 2, StageFact::Loading);
  EXPECT_EQ(rig.phase("a"), Phase::Loading);
  rig.report("a", 0, StageFact::Ready);
  rig.report("a", 2, StageFact::Ready);
  EXPECT_EQ(rig.phase("a"), Phase::Proving);
  ASSERT_EQ(rig.got<SendProbe>().size(), 1u);
  EXPECT_EQ(rig.got<SendProbe>()[0].node, "n1");
}

TEST_F(Start, ReadyStageDoesNotFallBackOnALateReport) {
  rig.connect_all();
  rig.to_proving("a");
  rig.report("a", 1, StageFact::Loading);
  rig.probe("a");
  EXPECT_EQ(rig.phase("a"), Phase::Serving);
  EXPECT_EQ(rig.view("a").stages[1], StageFact::Ready);
}

// Mode 43: readiness by completion only.
TEST_F(Start, GatewaySeesTheReplicaOnlyAfterItsProofIsWrittenDown) {
  rig.connect_all();
  rig.to_proving("a");
  EXPECT_TRUE(rig.route.empty());
  rig.probe("a");
  const std::size_t persisted = first_index<PersistReplica>(rig.last);
  ASSERT_LT(persisted, first_index<SetRoute>(rig.last));
  EXPECT_TRUE(std::get<PersistReplica>(rig.last[persisted]).replica.proven);
  ASSERT_EQ(rig.route.size(), 1u);
  EXPECT_EQ(rig.route[0].kv_capacity, Tokens{1000});
}

TEST_F(Start, BadProofIsAFailureOfTheStart) {
  rig.connect_all();
  rig.to_proving("a");
  rig.probe("a", {finding(Code::EFFECTIVE_CONFIG_DIFF, "n1", "context_length", "differs")});
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  EXPECT_EQ(rig.got<SendStop>().size(), 3u);
  EXPECT_EQ(rig.stored["a"].failures, 1u);
}

TEST_F(Start, AnswerToAnEarlierProbeProvesNothing) {
  rig.connect_all();
  rig.to_proving("a");
  const std::uint64_t first = rig.probe_requests["a"];
  rig.disconnect("n1");
  rig.connect("n1", {Rig::reported("a", 0, Epoch{1}, StageFact::Ready)});
  ASSERT_NE(rig.probe_requests["a"], first) << "asked anew after the reconnect";
  rig.step(ProbeFinished{first, {}, Tokens{1}});
  EXPECT_EQ(rig.phase("a"), Phase::Proving);
  rig.probe("a");
  EXPECT_EQ(rig.phase("a"), Phase::Serving);
}

TEST_F(Start, ProofThatNeverAnswersIsAFailure) {
  rig.connect_all();
  rig.to_proving("a");
  rig.pass(10min);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  EXPECT_TRUE(has(rig.view("a").findings, Code::NOT_READY));
}

TEST_F(Start, LeftoverOfAnyEpochBlocksUntilItIsSwept) {
  rig.connect("n1");
  rig.connect("n3");
  rig.connect("n2", {Rig::reported("a", 1, Epoch{9}, StageFact::Ready)});
  ASSERT_EQ(rig.got<SendStop>().size(), 1u) << "nobody wants it";
  rig.wish(Wish::Start, "a");
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
  rig.report_epoch("a", 1, Epoch{9}, StageFact::NotReleased,
                   {finding(Code::NOT_RELEASED, "n2", "n2", "memory is not back")});
  rig.pass(5s);
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
  rig.report_epoch("a", 1, Epoch{9}, StageFact::Absent);
  EXPECT_EQ(rig.phase("a"), Phase::Verifying);
}

TEST_F(Start, BlockedStartAnswersItsCommandWithTheReasonAndStaysWanted) {
  rig.connect("n1");
  rig.connect("n2");
  rig.wish(Wish::Start, "a", 7);
  rig.pass(59s);
  EXPECT_FALSE(rig.finished(7).has_value());
  rig.pass(2s);
  ASSERT_TRUE(rig.finished(7).has_value());
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Error);
  EXPECT_TRUE(has(rig.finished(7)->findings, Code::NODE_LOST));
  EXPECT_EQ(Rig::of<OpenIncident>(rig.all).size(), 1u);
  rig.connect("n3");
  EXPECT_EQ(rig.phase("a"), Phase::Verifying);
}

TEST_F(Start, RefusedStartEndsTheEpoch) {
  rig.connect_all();
  rig.to_starting("a");
  rig.step(StartRefused{"n2", stage("a", 1), Epoch{1}, finding(Code::STALE_EPOCH, "n2", "a/1", "busy")});
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  EXPECT_EQ(rig.got<SendStop>().size(), 3u);
}

}  // namespace
}  // namespace troika::policies::test
