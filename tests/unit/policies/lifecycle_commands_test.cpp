// Commands and the route.
#include <gtest/gtest.h>

#include <algorithm>

#include "rig.hpp"

namespace troika::policies::test {
namespace {

class Command : public ::testing::Test {
 protected:
  Command() {
    rig.lead();
    rig.connect_all();
  }
  std::size_t times_finished(std::uint64_t command) const {
    std::size_t n = 0;
    for (const FinishCommand& f : Rig::of<FinishCommand>(rig.all))
      n += f.command == command;
    return n;
  }
  Rig rig;
};

TEST_F(Command, UnknownReplicaIsAnErrorWithTheAllowedNames) {
  for (const Wish what : {Wish::Start, Wish::Stop, Wish::Restart, Wish::Drain, Wish::Failover}) {
    rig.wish(what, "c", 7);
    ASSERT_EQ(rig.got<FinishCommand>().size(), 1u);
    EXPECT_EQ(rig.got<FinishCommand>()[0].verdict, Verdict::Error);
    EXPECT_NE(rig.got<FinishCommand>()[0].text.find("a, b"), std::string::npos);
  }
}

TEST_F(Command, StartOfEverythingEndsWhenAllServe) {
  rig.wish(Wish::Start, "", 7);
  for (const char* replica : {"a", "b"}) {
    EXPECT_FALSE(rig.finished(7).has_value());
    rig.verify(replica);
    rig.report_all(replica, StageFact::Ready);
    rig.probe(replica);
  }
  ASSERT_TRUE(rig.finished(7).has_value());
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Ok);
  EXPECT_EQ(times_finished(7), 1u);
}

TEST_F(Command, StartOfEverythingTellsWhichOneFailed) {
  rig.wish(Wish::Start, "", 7);
  rig.verify("a", {finding(Code::HASH_MISMATCH, "n2", "shard", "differs")});
  rig.verify("b");
  rig.report_all("b", StageFact::Ready);
  rig.probe("b");
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Error);
  EXPECT_NE(rig.finished(7)->text.find("b serves"), std::string::npos);
}

TEST_F(Command, StartOfWhatServesIsDoneAtOnce) {
  rig.to_serving("a");
  rig.wish(Wish::Start, "a", 7);
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Ok);
  EXPECT_TRUE(rig.got<SendStart>().empty());
}

TEST_F(Command, StartThatFailsTwiceTellsOfTheBreaker) {
  rig.wish(Wish::Start, "a", 7);
  rig.verify("a");
  rig.report("a", 1, StageFact::Exited);
  EXPECT_FALSE(rig.finished(7).has_value()) << "one automatic restart is still to come";
  rig.release_all("a");
  rig.pass(2s);
  rig.verify("a");
  rig.report("a", 1, StageFact::Exited);
  rig.release_all("a");
  ASSERT_TRUE(rig.finished(7).has_value());
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Error);
  EXPECT_TRUE(has(rig.finished(7)->findings, Code::BREAKER_OPEN));
}

TEST_F(Command, OpposedOneSupersedes) {
  rig.wish(Wish::Start, "a", 7);
  rig.wish(Wish::Stop, "a", 8);
  ASSERT_TRUE(rig.finished(7).has_value());
  EXPECT_NE(rig.finished(7)->text.find("superseded by stop"), std::string::npos);
  EXPECT_TRUE(rig.finished(8).has_value());
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
  rig.verify("a");
  EXPECT_EQ(rig.phase("a"), Phase::Stopped) << "a late verification starts nothing";
}

TEST_F(Command, SameOutcomeIsWaitedForTogether) {
  rig.wish(Wish::Start, "a", 7);
  rig.wish(Wish::Start, "a", 8);
  rig.verify("a");
  rig.report_all("a", StageFact::Ready);
  rig.probe("a");
  EXPECT_EQ(times_finished(7), 1u);
  EXPECT_EQ(times_finished(8), 1u);
}

TEST_F(Command, StartDuringAStopStartsAfterTheRelease) {
  rig.to_serving("a");
  rig.wish(Wish::Stop, "a", 7);
  rig.wish(Wish::Start, "a", 8);
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Error);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  rig.release_all("a");
  EXPECT_EQ(rig.phase("a"), Phase::Verifying);
}

TEST_F(Command, RestartIsOneTransactionWithANewEpochAndNoFailure) {
  rig.to_serving("a");
  rig.wish(Wish::Restart, "a", 7);
  EXPECT_EQ(rig.phase("a"), Phase::Stopping);
  EXPECT_LT(first_index<SetRoute>(rig.last), first_index<SendStop>(rig.last));
  EXPECT_FALSE(rig.finished(7).has_value());
  rig.release_all("a");
  EXPECT_EQ(rig.phase("a"), Phase::Verifying) << "no backoff";
  rig.verify("a");
  EXPECT_EQ(rig.view("a").epoch, Epoch{2});
  EXPECT_EQ(rig.stored["a"].failures, 0u);
  rig.report_all("a", StageFact::Ready);
  rig.probe("a");
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Ok);
}

TEST_F(Command, RestartOfAStoppedReplicaStartsIt) {
  rig.wish(Wish::Restart, "a", 7);
  EXPECT_EQ(rig.phase("a"), Phase::Verifying);
}

TEST_F(Command, DrainCalledOffServesOn) {
  rig.to_serving("a");
  rig.wish(Wish::Drain, "a", 7);
  rig.wish(Wish::Start, "a", 8);
  EXPECT_EQ(rig.phase("a"), Phase::Serving);
  EXPECT_EQ(rig.routed(), Names{"a"});
  rig.step(GatewayDrained{"a", Epoch{1}});
  EXPECT_EQ(rig.phase("a"), Phase::Serving);
  EXPECT_EQ(rig.finished(8)->verdict, Verdict::Ok);
}

TEST_F(Command, WithoutANumberNobodyWaits) {
  rig.wish(Wish::Stop, "a");
  EXPECT_TRUE(rig.got<FinishCommand>().empty());
}

TEST_F(Command, TooManyAtOnceAreRefused) {
  for (std::uint64_t id = 1; id <= 100; ++id)
    rig.wish(Wish::Start, "a", id);
  EXPECT_EQ(Rig::of<FinishCommand>(rig.all).size(), 36u);
}

TEST_F(Command, FailoverToAServingReplicaIsImmediateAndSticks) {
  rig.to_serving("a");
  rig.to_serving("b");
  EXPECT_EQ(rig.routed(), (Names{"a", "b"}));
  rig.wish(Wish::Failover, "", 7);
  EXPECT_EQ(rig.routed(), (Names{"b", "a"}));
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Ok);
  EXPECT_TRUE(rig.stored["b"].active);
  EXPECT_FALSE(rig.stored["a"].active);
  rig.wish(Wish::Failover, "b", 8);
  EXPECT_EQ(rig.finished(8)->verdict, Verdict::Ok) << "it is active already";
}

TEST_F(Command, FailoverToAStoppedReplicaStartsItFirst) {
  rig.to_serving("a");
  rig.wish(Wish::Failover, "b", 7);
  EXPECT_EQ(rig.routed(), Names{"a"});
  rig.verify("b");
  rig.report_all("b", StageFact::Ready);
  EXPECT_FALSE(rig.finished(7).has_value());
  rig.probe("b");
  EXPECT_EQ(rig.routed(), (Names{"b", "a"}));
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Ok);
}

TEST_F(Command, FailoverThatFailsLeavesTheActiveOne) {
  rig.to_serving("a");
  rig.wish(Wish::Failover, "b", 7);
  rig.verify("b", {finding(Code::HASH_MISMATCH, "n5", "shard", "differs")});
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Error);
  EXPECT_EQ(rig.routed(), Names{"a"});
  rig.to_serving("b");
  EXPECT_EQ(rig.routed(), (Names{"a", "b"})) << "the failed wish is forgotten";
}

TEST(Failover, WithOneReplicaThereIsNoOther) {
  ClusterPlan plan = Rig::two_replicas();
  plan.replicas.pop_back();
  Rig rig(plan);
  rig.lead();
  rig.wish(Wish::Failover, "", 7);
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Error);
}

TEST_F(Command, OtherProvenReplicaTakesOverInTheSameStep) {
  rig.to_serving("a");
  rig.to_serving("b");
  rig.report("a", 2, StageFact::Exited);
  EXPECT_EQ(rig.routed(), Names{"b"});
  rig.recover("a");
  EXPECT_EQ(rig.routed(), (Names{"b", "a"})) << "what came back stands by";
}

TEST_F(Command, StopOfEverythingDoesNotTurnToTheOtherForAMoment) {
  rig.to_serving("a");
  rig.to_serving("b");
  rig.wish(Wish::Stop, "", 7);
  ASSERT_FALSE(rig.got<SetRoute>().empty());
  for (const SetRoute& one : rig.got<SetRoute>())
    EXPECT_TRUE(one.entries.empty());
  EXPECT_LT(first_index<SetRoute>(rig.last), first_index<SendStop>(rig.last));
  rig.release_all("a");
  EXPECT_FALSE(rig.finished(7).has_value());
  rig.release_all("b");
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Ok);
  // What clients are told while nothing serves stays true.
  const std::string reason = Rig::of<SetRoute>(rig.all).back().reason;
  EXPECT_NE(reason.find("a is stopped"), std::string::npos) << reason;
  EXPECT_NE(reason.find("b is stopped"), std::string::npos) << reason;
}

TEST_F(Command, RouteIsGivenOnlyWhenItChanges) {
  rig.to_serving("a");
  const std::size_t before = Rig::of<SetRoute>(rig.all).size();
  rig.pass(5min);
  rig.disconnect("n2");
  rig.connect("n2", {Rig::reported("a", 1, Epoch{1}, StageFact::Ready)});
  EXPECT_EQ(Rig::of<SetRoute>(rig.all).size(), before);
}

TEST_F(Command, StopClosesTheIncidentOfABarredReplica) {
  rig.to_serving("a");
  for (int i = 0; i < 2; ++i) {
    rig.report("a", 1, StageFact::Exited);
    rig.release_all("a");
    rig.pass(2s);
    rig.verify("a");
  }
  ASSERT_EQ(rig.phase("a"), Phase::Failed);
  rig.wish(Wish::Stop, "a", 7);
  EXPECT_EQ(rig.got<CloseIncident>().size(), 1u);
  EXPECT_EQ(rig.finished(7)->verdict, Verdict::Ok);
}

}  // namespace
}  // namespace troika::policies::test
