// A leader's start: stages are found again, numbers never come back.
#include <gtest/gtest.h>

#include "rig.hpp"

namespace troika::policies::test {
namespace {

class Adopt : public ::testing::Test {
 protected:
  Adopt() {
    before.lead();
    before.connect_all();
  }
  std::vector<ReportedStage> stage_of(const std::string& replica, std::uint32_t rank, Epoch epoch,
                                      StageFact fact = StageFact::Ready) {
    return {Rig::reported(replica, rank, epoch, fact)};
  }
  Rig before;
};

TEST_F(Adopt, ServingReplicaGoesOnWithoutARestart) {
  before.to_serving("a");
  Rig next = before.successor();
  EXPECT_TRUE(Rig::of<SetRoute>(next.all).empty()) << "the gateway goes on meanwhile";
  next.connect("n1", stage_of("a", 0, Epoch{1}));
  next.connect("n2", stage_of("a", 1, Epoch{1}));
  EXPECT_TRUE(Rig::of<SetRoute>(next.all).empty());
  next.connect("n3", stage_of("a", 2, Epoch{1}));
  EXPECT_EQ(next.phase("a"), Phase::Serving);
  EXPECT_EQ(next.routed(), Names{"a"});
  EXPECT_EQ(next.route[0].kv_capacity, Tokens{1000}) << "known from its proof";
  EXPECT_TRUE(Rig::of<SendStart>(next.all).empty());
  EXPECT_TRUE(Rig::of<SendStop>(next.all).empty());
  EXPECT_TRUE(Rig::of<SendProbe>(next.all).empty());
}

TEST_F(Adopt, RouteWaitsForTheOtherProvenReplicaToo) {
  before.to_serving("a");
  before.to_serving("b");
  Rig next = before.successor();
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    next.connect(next.node_of("a", rank), stage_of("a", rank, Epoch{1}));
  EXPECT_TRUE(Rig::of<SetRoute>(next.all).empty());
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    next.connect(next.node_of("b", rank), stage_of("b", rank, Epoch{1}));
  EXPECT_EQ(next.routed(), (Names{"a", "b"}));
}

TEST_F(Adopt, DeadOneIsTakenOutOfTheRouteAtOnce) {
  before.to_serving("a");
  before.to_serving("b");
  Rig next = before.successor();
  next.connect("n4", stage_of("b", 0, Epoch{1}));
  next.connect("n2");
  EXPECT_EQ(next.phase("a"), Phase::Stopping);
  EXPECT_EQ(next.routed(), Names{"b"});
}

TEST_F(Adopt, NodeThatDoesNotComeBackWithinTheWindowFailsIt) {
  before.to_serving("a");
  Rig next = before.successor();
  next.connect("n1", stage_of("a", 0, Epoch{1}));
  next.connect("n2", stage_of("a", 1, Epoch{1}));
  next.pass(14s);
  EXPECT_NE(next.phase("a"), Phase::Stopping);
  next.pass(1s);
  EXPECT_EQ(next.phase("a"), Phase::Stopping);
  EXPECT_TRUE(has(next.view("a").findings, Code::NODE_LOST));
}

TEST_F(Adopt, LoadAndProofGoOnWhereTheLeaderLeft) {
  before.to_loading("a");
  before.to_proving("b");
  Rig next = before.successor();
  next.connect("n1", stage_of("a", 0, Epoch{1}));
  next.connect("n2", stage_of("a", 1, Epoch{1}, StageFact::Loading));
  next.connect("n3", stage_of("a", 2, Epoch{1}));
  EXPECT_EQ(next.phase("a"), Phase::Loading);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    next.connect(next.node_of("b", rank), stage_of("b", rank, Epoch{1}));
  EXPECT_EQ(next.phase("b"), Phase::Proving);
  EXPECT_EQ(next.got<SendProbe>().size(), 1u);
  next.report("a", 1, StageFact::Ready);
  EXPECT_EQ(next.phase("a"), Phase::Proving);
}

TEST_F(Adopt, EpochWrittenDownButNeverStartedIsNoFailure) {
  before.to_starting("a");
  Rig next = before.successor();
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    next.connect(next.node_of("a", rank));
  EXPECT_EQ(next.stored["a"].failures, 0u);
  EXPECT_EQ(next.phase("a"), Phase::Verifying);
  next.verify("a");
  EXPECT_EQ(next.view("a").epoch, Epoch{2}) << "its number is used up all the same";
}

TEST_F(Adopt, FailureIsNotCountedASecondTimeByTheNextLeader) {
  before.to_serving("a");
  before.report("a", 1, StageFact::Exited);
  Rig next = before.successor();
  next.connect("n1", stage_of("a", 0, Epoch{1}));
  next.connect("n2");
  next.connect("n3");
  EXPECT_FALSE(next.view("a").breaker_open);
  ASSERT_EQ(Rig::of<SendStop>(next.all).size(), 1u);
  next.report("a", 0, StageFact::Absent);
  EXPECT_EQ(next.phase("a"), Phase::Verifying);
  next.verify("a");
  next.report("a", 0, StageFact::Exited);
  EXPECT_TRUE(next.view("a").breaker_open) << "the attempt before is remembered across leaders";
}

TEST_F(Adopt, OpenBreakerStaysOpen) {
  before.to_serving("a");
  for (int i = 0; i < 2; ++i) {
    before.report("a", 1, StageFact::Exited);
    before.release_all("a");
    before.pass(2s);
    before.verify("a");
  }
  ASSERT_EQ(before.phase("a"), Phase::Failed);
  Rig next = before.successor();
  next.connect_all();
  next.pass(1min);
  EXPECT_EQ(next.phase("a"), Phase::Failed);
  EXPECT_TRUE(next.view("a").breaker_open);
}

TEST_F(Adopt, WhatNobodyWantsIsSweptAtOnce) {
  before.to_serving("a");
  before.wish(Wish::Stop, "b");
  Rig next = before.successor();
  next.connect("n1", {Rig::reported("a", 0, Epoch{1}, StageFact::Ready),
                      Rig::reported("x", 0, Epoch{4}, StageFact::Loading)});
  ASSERT_EQ(next.got<SendStop>().size(), 1u) << "an unknown replica";
  EXPECT_EQ(next.got<SendStop>()[0].stage, stage("x", 0));
  next.connect("n2", stage_of("a", 1, Epoch{0}));
  ASSERT_EQ(next.got<SendStop>().size(), 2u) << "an older epoch, and the rank of this one is gone with it";
  next.connect("n4", stage_of("b", 0, Epoch{1}));
  ASSERT_EQ(next.got<SendStop>().size(), 1u) << "desired stopped";
  EXPECT_EQ(next.got<SendStop>()[0].node, "n4");
}

TEST_F(Adopt, InterruptedStopGoesOn) {
  before.to_serving("a");
  before.wish(Wish::Stop, "a");
  Rig next = before.successor();
  EXPECT_EQ(next.phase("a"), Phase::Stopping);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    next.connect(next.node_of("a", rank));
  EXPECT_EQ(next.phase("a"), Phase::Stopped);
}

TEST_F(Adopt, InterruptedDrainGoesOnWithoutCuttingRequests) {
  before.to_serving("a");
  before.wish(Wish::Drain, "a");
  Rig next = before.successor();
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    next.connect(next.node_of("a", rank), stage_of("a", rank, Epoch{1}));
  EXPECT_EQ(next.phase("a"), Phase::Draining);
  EXPECT_EQ(next.routed(), Names{"a draining"});
  EXPECT_TRUE(Rig::of<SendStop>(next.all).empty());
}

TEST_F(Adopt, ActiveReplicaStaysActive) {
  before.to_serving("a");
  before.to_serving("b");
  before.wish(Wish::Failover, "b");
  Rig next = before.successor();
  for (const char* replica : {"a", "b"})
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      next.connect(next.node_of(replica, rank), stage_of(replica, rank, Epoch{1}));
  EXPECT_EQ(next.routed(), (Names{"b", "a"}));
}

TEST_F(Adopt, NothingIsStartedWhileItsNodesHaveNotAllSpoken) {
  before.to_serving("a");
  before.wish(Wish::Start, "b");
  Rig next = before.successor();
  next.connect("n4");
  next.connect("n5");
  next.pass(10s);
  EXPECT_TRUE(Rig::of<SendVerify>(next.all).empty());
  next.connect("n6");
  EXPECT_EQ(Rig::of<SendVerify>(next.all).size(), 3u) << "at once, the window need not pass";
}

TEST(Term, IsAboveTheStoredOneAndWrittenDownFirst) {
  Rig rig;
  rig.lead(Term{5});
  EXPECT_EQ(rig.cluster.term(), Term{6});
  EXPECT_LT(first_index<PersistTerm>(rig.last), first_index<AnnounceTerm>(rig.last));
}

TEST(Term, IsRaisedAboveAnyHeard) {
  Rig rig;
  rig.lead(Term{5});
  rig.connect("n1");
  rig.connect("n2", {}, "boot-1", Term{9});
  EXPECT_EQ(rig.cluster.term(), Term{10});
  ASSERT_EQ(rig.got<PersistTerm>().size(), 1u);
  ASSERT_EQ(rig.got<AnnounceTerm>().size(), 1u);
  EXPECT_TRUE(rig.got<AnnounceTerm>()[0].node.empty()) << "to all";
}

// A lost store begins at 1 again: an agent that knows 1 already knows it from another leadership.
TEST(Term, EqualOneThatWeDidNotAnnounceIsAnothersOwn) {
  Rig rig;
  rig.lead(Term{0});
  rig.connect("n1", {}, "boot-1", Term{1});
  EXPECT_EQ(rig.cluster.term(), Term{2});
  rig.connect("n1", {}, "boot-1", Term{2});
  EXPECT_EQ(rig.cluster.term(), Term{2}) << "this one we did announce there";
}

TEST(Term, WelcomeComesFirstToEveryAgent) {
  Rig rig;
  rig.lead();
  rig.connect("n1", {Rig::reported("x", 0, Epoch{4}, StageFact::Ready)});
  ASSERT_EQ(rig.got<AnnounceTerm>().size(), 1u);
  EXPECT_EQ(rig.got<AnnounceTerm>()[0].node, "n1");
  EXPECT_LT(first_index<AnnounceTerm>(rig.last), first_index<SendStop>(rig.last));
}

TEST(Term, HeardFromTheGatewayGivesTheRouteAgain) {
  Rig rig;
  rig.lead();
  rig.step(TermHeard{Term{7}});
  EXPECT_EQ(rig.cluster.term(), Term{8});
  EXPECT_EQ(rig.got<SetRoute>().size(), 1u);
  rig.step(TermHeard{Term{8}});
  EXPECT_TRUE(rig.last.empty());
}

TEST(Epoch, LostStoreCannotBringOldNumbersBack) {
  Rig rig;
  rig.lead();
  rig.connect("n1", {}, "boot-1", Term{3}, {{"a", Epoch{12}}});
  rig.connect("n2", {Rig::reported("a", 1, Epoch{13}, StageFact::Ready)});
  rig.connect("n3");
  rig.wish(Wish::Start, "a");
  EXPECT_EQ(rig.phase("a"), Phase::Stopped);
  rig.report_epoch("a", 1, Epoch{13}, StageFact::Absent);
  rig.verify("a");
  EXPECT_EQ(rig.view("a").epoch, Epoch{14});
}

}  // namespace
}  // namespace troika::policies::test
