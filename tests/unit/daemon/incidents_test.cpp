#include "daemon/incidents/incidents.hpp"

#include <gtest/gtest.h>

#include "daemon/incidents/request_failures.hpp"
#include "tests/unit/daemon/at.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::daemon {
namespace {

using namespace std::chrono_literals;

class IncidentsTest : public testing::Test {
 protected:
  IncidentsTest() {
    auto opened = Store::open(folder_ / "troika.sqlite");
    EXPECT_TRUE(opened.ok());
    store_ = std::make_unique<Store>(std::move(opened).value());
    incidents_ = std::make_unique<Incidents>(*store_);
  }
  std::vector<protocol::Incident> list(protocol::IncidentsRequest request = {}) {
    auto listed = incidents_->list(request);
    EXPECT_TRUE(listed.ok());
    return listed.ok() ? *listed : std::vector<protocol::Incident>{};
  }
  Finding died() { return finding(Code::STAGE_DIED, "n1", "a/1", "signal 9"); }

  platform::Folder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Incidents> incidents_;
};

TEST_F(IncidentsTest, FromFirstSignToRecovery) {
  ASSERT_TRUE(incidents_->open("replica a", "failed", {died()}, at(1000)).ok());
  ASSERT_TRUE(
      incidents_->open("replica a", "again", {died(), finding(Code::NODE_LOST, "n1", "n1", "gone")}, at(2000))
          .ok());
  EXPECT_TRUE(*incidents_->note("replica a", "stopped a/1", {}, at(3000)));
  ASSERT_TRUE(incidents_->close("replica a", "serves again", at(4000)).ok());
  ASSERT_TRUE(incidents_->open("replica a", "second", {}, at(5000)).ok());
  const auto all = list();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].title, "failed");
  EXPECT_EQ(all[0].opened, "1970-01-01T00:00:01.000Z");
  EXPECT_EQ(all[0].closed, "1970-01-01T00:00:04.000Z");
  ASSERT_EQ(all[0].findings.size(), 2u);  // the same finding is kept once
  EXPECT_EQ(all[0].findings[0], died());
  ASSERT_EQ(all[0].actions.size(), 2u);
  EXPECT_EQ(all[0].actions[0], "1970-01-01T00:00:03.000Z stopped a/1");
  EXPECT_EQ(all[1].closed, "");
  protocol::IncidentsRequest open_only;
  open_only.open_only = true;
  EXPECT_EQ(list(open_only).size(), 1u);
  protocol::IncidentsRequest since;
  since.since = "1970-01-01T00:00:04.500Z";
  EXPECT_EQ(list(since).size(), 1u);
  protocol::IncidentsRequest one;
  one.limit = 1;
  ASSERT_EQ(list(one).size(), 1u);
  EXPECT_EQ(list(one)[0].title, "second");
  since.since = "yesterday";
  EXPECT_FALSE(incidents_->list(since).ok());
}

TEST_F(IncidentsTest, ANearerCauseGivesTheOpenOneAnotherTitle) {
  ASSERT_TRUE(incidents_->open("replica a", "rank 0 lost a link", {}, at(1)).ok());
  EXPECT_TRUE(*incidents_->note("replica a", "a/1 reported its end", {died()}, at(2), "rank 1 was killed"));
  EXPECT_TRUE(*incidents_->note("replica a", "nothing is left", {}, at(3)));
  EXPECT_EQ(list()[0].title, "rank 1 was killed");
}

TEST_F(IncidentsTest, NotesAndClosesWithoutAnOpenOneDoNothing) {
  EXPECT_FALSE(*incidents_->note("replica a", "x", {died()}, at(1)));
  EXPECT_TRUE(incidents_->close("replica a", "x", at(1)).ok());
  EXPECT_TRUE(list().empty());
}

TEST_F(IncidentsTest, OneIncidentIsBounded) {
  ASSERT_TRUE(incidents_->open("replica a", "t", {}, at(1)).ok());
  for (int i = 0; i < 400; ++i) {
    const auto f = finding(Code::STAGE_DIED, "n1", "a/1", "number " + std::to_string(i));
    ASSERT_TRUE(*incidents_->note("replica a", "action " + std::to_string(i), {f}, at(i)));
  }
  const auto all = list();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].findings.size(), static_cast<std::size_t>(Incidents::kFindingsEach));
  ASSERT_EQ(all[0].actions.size(), static_cast<std::size_t>(Incidents::kActionsEach));
  EXPECT_NE(all[0].actions.back().find("action 399"), std::string::npos);
}

TEST_F(IncidentsTest, OldClosedOnesGoAndOpenOnesStay) {  // mode 86
  ASSERT_TRUE(incidents_->open("node n1", "stays", {}, at(1)).ok());
  ASSERT_TRUE(
      store_->database()
          .execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
                   "INSERT INTO incidents (opened, closed, subject, title) SELECT i, i, 'x', 'y' FROM n")
          .ok());
  ASSERT_TRUE(incidents_->open("replica a", "new", {}, at(2)).ok());
  auto count = store_->database().prepare("SELECT count(*) FROM incidents");
  ASSERT_TRUE(count.ok() && *count->step());
  EXPECT_EQ(count->integer(0), Incidents::kKeptIncidents + 2);
  protocol::IncidentsRequest open_only;
  open_only.open_only = true;
  EXPECT_EQ(list(open_only).size(), 2u);
}

protocol::RequestFailed failed(const std::string& id) {
  protocol::RequestFailed f;
  f.request = id;
  f.replica = "a";
  f.finding = finding(Code::TRUNCATED, "n1", id, "cut");
  return f;
}

TEST_F(IncidentsTest, FailedRequestsBelongToTheReplicasIncident) {
  RequestFailures failures(*incidents_);
  const Instant begin{1h};
  for (int i = 0; i < 20; ++i)
    failures.take(failed("r" + std::to_string(i)), begin);
  ASSERT_TRUE(failures.tick(begin + 1s, at(1)).ok());
  EXPECT_TRUE(list().empty());  // the agent's word may be on its way
  ASSERT_TRUE(incidents_->open("replica a", "a/1 died", {died()}, at(2)).ok());
  ASSERT_TRUE(failures.tick(begin + 1100ms, at(3)).ok());  // at once: it may close soon
  ASSERT_TRUE(incidents_->close("replica a", "serves again", at(4)).ok());
  ASSERT_TRUE(failures.tick(begin + RequestFailures::kCollect, at(5)).ok());
  const auto all = list();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].findings.size(), 1 + RequestFailures::kFindingsKept);
  ASSERT_EQ(all[0].actions.size(), 2u);
  EXPECT_NE(all[0].actions[0].find("20 requests failed"), std::string::npos);
}

TEST_F(IncidentsTest, FailedRequestsAloneAreAnIncidentThatClosesByItself) {
  RequestFailures failures(*incidents_);
  const Instant begin{1h};
  failures.take(failed("r1"), begin);
  ASSERT_TRUE(failures.tick(begin + 3s, at(1)).ok());
  ASSERT_EQ(list().size(), 1u);
  EXPECT_EQ(list()[0].subject, "requests of replica a");
  EXPECT_EQ(list()[0].closed, "");
  // A leader that starts in between watches on.
  RequestFailures later(*incidents_);
  ASSERT_TRUE(later.recall({"a"}, begin + 10s).ok());
  ASSERT_TRUE(later.tick(begin + 69s, at(2)).ok());
  EXPECT_EQ(list()[0].closed, "");
  ASSERT_TRUE(later.tick(begin + 70s, at(3)).ok());
  EXPECT_NE(list()[0].closed, "");
}

}  // namespace
}  // namespace troika::daemon
