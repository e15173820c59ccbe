// The agent's fence. Mode 86.
#include "policies/fencing.hpp"

#include <gtest/gtest.h>

namespace troika::policies {
namespace {

const StageId kA0{"a", Rank{0}};
const StageId kA1{"a", Rank{1}};
const StageId kB0{"b", Rank{0}};

FenceState state(std::uint64_t term, std::uint64_t epoch = 0, std::uint64_t ended = 0) {
  FenceState s;
  s.highest_term = Term{term};
  if (epoch != 0) s.highest_epochs["a"] = Epoch{epoch};
  if (ended != 0) s.ended_epochs["a"] = Epoch{ended};
  return s;
}

TEST(Fence, TermTable) {
  struct Case {
    std::uint64_t known, offered;
    FenceVerdict verdict;
    bool write;
  };
  for (const Case& c : {Case{5, 4, FenceVerdict::StaleTerm, false}, Case{5, 5, FenceVerdict::Accept, false},
                        Case{5, 6, FenceVerdict::Accept, true}, Case{0, 0, FenceVerdict::Accept, false}}) {
    for (const FenceAnswer& answer :
         {check_term(state(c.known), Term{c.offered}), check_verify(state(c.known), Term{c.offered})}) {
      EXPECT_EQ(answer.verdict, c.verdict) << c.known << " " << c.offered;
      EXPECT_EQ(answer.write_first, c.write);
      EXPECT_EQ(answer.next.highest_term.count, std::max(c.known, c.offered));
    }
  }
}

TEST(Fence, StaleTermIsRefusedWhateverElseIsRight) {
  const FenceState s = state(5, 3);
  for (const FenceAnswer& answer :
       {check_start(s, Term{4}, kA0, Epoch{9}, {}), check_stop(s, Term{4}, kA0, Epoch{3}),
        check_probe(s, Term{4}, "a", Epoch{3}, {{kA0, Epoch{3}}})}) {
    EXPECT_EQ(answer.verdict, FenceVerdict::StaleTerm);
    EXPECT_FALSE(answer.write_first);
    EXPECT_EQ(answer.next, s);
    EXPECT_NE(answer.message.find("term 5"), std::string::npos);
  }
}

TEST(Fence, StartTable) {
  struct Case {
    const char* what;
    FenceState s;
    StageId stage;
    std::uint64_t epoch;
    std::vector<HeldStage> held;
    FenceVerdict verdict;
  };
  const std::vector<Case> cases{
      {"first", state(5), kA0, 1, {}, FenceVerdict::Accept},
      {"epoch zero is none", state(5), kA0, 0, {}, FenceVerdict::StaleEpoch},
      {"next", state(5, 3, 3), kA0, 4, {}, FenceVerdict::Accept},
      {"older", state(5, 3), kA0, 2, {}, FenceVerdict::StaleEpoch},
      {"same after its stop", state(5, 3, 3), kA0, 3, {}, FenceVerdict::StaleEpoch},
      {"same again while it runs", state(5, 3), kA0, 3, {{kA0, Epoch{3}}}, FenceVerdict::Repeat},
      {"another rank of the same epoch", state(5, 3), kA1, 3, {{kA0, Epoch{3}}}, FenceVerdict::Accept},
      {"next while the older is not released", state(5, 3), kA0, 4, {{kA0, Epoch{3}}}, FenceVerdict::Busy},
      {"next while another rank's is not released",
       state(5, 3),
       kA1,
       4,
       {{kA0, Epoch{3}}},
       FenceVerdict::Busy},
      {"while another replica is here", state(5), kA0, 1, {{kB0, Epoch{7}}}, FenceVerdict::Busy},
  };
  for (const Case& c : cases) {
    const FenceAnswer answer = check_start(c.s, Term{5}, c.stage, Epoch{c.epoch}, c.held);
    EXPECT_EQ(answer.verdict, c.verdict) << c.what;
    EXPECT_EQ(answer.obey(), answer.message.empty()) << c.what;
    if (answer.verdict == FenceVerdict::Accept) {
      EXPECT_EQ(answer.next.highest_epochs.at("a"), Epoch{c.epoch}) << c.what;
    }
    if (!answer.obey()) {
      EXPECT_EQ(answer.next, c.s) << c.what;
    }
  }
}

TEST(Fence, NewEpochIsWrittenDownBeforeItIsObeyed) {
  EXPECT_TRUE(check_start(state(5, 3), Term{5}, kA0, Epoch{4}, {}).write_first);
  EXPECT_FALSE(check_start(state(5, 4), Term{5}, kA1, Epoch{4}, {}).write_first);
  EXPECT_TRUE(check_start(state(5, 4), Term{6}, kA0, Epoch{4}, {{kA0, Epoch{4}}}).write_first)
      << "a repeat under a new term";
}

TEST(Fence, StopEndsItsEpochForGood) {
  const FenceAnswer stop = check_stop(state(5, 3), Term{5}, kA0, Epoch{7});
  ASSERT_TRUE(stop.obey());
  EXPECT_TRUE(stop.write_first);
  for (const std::uint64_t epoch : {3u, 6u, 7u})
    EXPECT_EQ(check_start(stop.next, Term{5}, kA0, Epoch{epoch}, {}).verdict, FenceVerdict::StaleEpoch)
        << epoch;
  EXPECT_EQ(check_start(stop.next, Term{5}, kA0, Epoch{8}, {}).verdict, FenceVerdict::Accept);
  EXPECT_FALSE(check_stop(stop.next, Term{5}, kA0, Epoch{7}).write_first) << "again: nothing new";
  EXPECT_TRUE(check_stop(stop.next, Term{5}, kA0, Epoch{2}).obey()) << "an older one is idempotent";
}

TEST(Fence, ProbeMustNameWhatRunsHere) {
  const std::vector<HeldStage> held{{kA0, Epoch{3}}};
  EXPECT_TRUE(check_probe(state(5, 3), Term{5}, "a", Epoch{3}, held).obey());
  EXPECT_EQ(check_probe(state(5, 3), Term{5}, "a", Epoch{4}, held).verdict, FenceVerdict::StaleEpoch);
  EXPECT_EQ(check_probe(state(5, 3), Term{5}, "b", Epoch{3}, held).verdict, FenceVerdict::StaleEpoch);
}

TEST(Fence, RouteTable) {
  const RouteFence in_force{Term{5}, 3};
  EXPECT_EQ(check_route(in_force, {Term{4}, 9}), FenceVerdict::StaleTerm);
  EXPECT_EQ(check_route(in_force, {Term{5}, 2}), FenceVerdict::StaleTerm);
  EXPECT_EQ(check_route(in_force, {Term{5}, 3}), FenceVerdict::Repeat);
  EXPECT_EQ(check_route(in_force, {Term{5}, 4}), FenceVerdict::Accept);
  EXPECT_EQ(check_route(in_force, {Term{6}, 1}), FenceVerdict::Accept);
}

TEST(Fence, Names) {
  EXPECT_EQ(name(FenceVerdict::StaleTerm), "STALE_TERM");
  EXPECT_EQ(name(FenceVerdict::StaleEpoch), "STALE_EPOCH");
  EXPECT_EQ(name(FenceVerdict::Busy), "BUSY");
}

}  // namespace
}  // namespace troika::policies
