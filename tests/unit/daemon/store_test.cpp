// The leader's store: what is written is there, what cannot be written is told, a damaged file is left alone.
#include "daemon/store/store.hpp"

#include <gtest/gtest.h>

#include "tests/unit/daemon/at.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::daemon {
namespace {

using platform::Folder;

policies::StoredReplica replica(std::uint64_t epoch) {
  policies::StoredReplica r;
  r.name = "a";
  r.desired_running = true;
  r.epoch = Epoch{epoch};
  return r;
}

Store open(const Folder& folder) {
  auto store = Store::open(folder / "troika.sqlite");
  EXPECT_TRUE(store.ok()) << (store.ok() ? "" : store.error().message());
  return std::move(store).value();
}

TEST(Store, EveryFieldOfAReplicaComesBack) {
  Folder folder;
  auto r = replica(9);
  r.proven = true;
  r.breaker_open = true;
  r.ended = true;
  r.released = true;
  r.active = true;
  r.failures = 3;
  r.kv_capacity = Tokens{4096};
  {
    auto store = open(folder);
    ASSERT_TRUE(store.save_term(Term{4}).ok());
    ASSERT_TRUE(store.save_term(Term{5}).ok());
    ASSERT_TRUE(store.save_replica(r, Term{5}, at(1), "x").ok());
  }
  auto store = open(folder);
  EXPECT_EQ(*store.term(), Term{5});
  const auto replicas = *store.replicas();
  ASSERT_EQ(replicas.size(), 1u);
  EXPECT_EQ(replicas[0].name, "a");
  EXPECT_TRUE(replicas[0].desired_running && replicas[0].proven && replicas[0].breaker_open &&
              replicas[0].ended && replicas[0].released && replicas[0].active);
  EXPECT_EQ(replicas[0].epoch, Epoch{9});
  EXPECT_EQ(replicas[0].failures, 3u);
  EXPECT_EQ(replicas[0].kv_capacity, Tokens{4096});
}

TEST(Store, HistoryOfEpochs) {
  Folder folder;
  auto store = open(folder);
  ASSERT_TRUE(store.save_replica(replica(0), Term{1}, at(5), "").ok());
  EXPECT_TRUE(store.epochs("a")->empty());
  auto r = replica(1);
  ASSERT_TRUE(store.save_replica(r, Term{1}, at(10), "").ok());
  r.proven = true;
  ASSERT_TRUE(store.save_replica(r, Term{1}, at(20), "").ok());
  ASSERT_TRUE(store.save_replica(r, Term{1}, at(30), "").ok());
  r.proven = false;
  r.ended = true;
  ASSERT_TRUE(store.save_replica(r, Term{1}, at(40), "a/1 died").ok());
  ASSERT_TRUE(store.save_replica(r, Term{1}, at(50), "later").ok());
  ASSERT_TRUE(store.save_replica(replica(2), Term{2}, at(60), "").ok());
  ASSERT_TRUE(store.save_replica(replica(3), Term{2}, at(70), "").ok());
  const auto epochs = *store.epochs("a");
  ASSERT_EQ(epochs.size(), 3u);
  EXPECT_EQ(epochs[2].started, at(10));
  EXPECT_EQ(epochs[2].proven_at, at(20));
  EXPECT_EQ(epochs[2].ended, at(40));
  EXPECT_EQ(epochs[2].reason, "a/1 died");
  EXPECT_EQ(epochs[1].ended, at(70));  // superseded
  EXPECT_EQ(epochs[0].epoch, Epoch{3});
  EXPECT_EQ(epochs[0].ended, WallTime{});
}

TEST(Store, StageEventIsRecordedOnce) {
  Folder folder;
  auto store = open(folder);
  protocol::StageEvent event;
  event.event = "n1-boot-1";
  EXPECT_TRUE(*store.save_stage_event("n1", event, at(1)));
  EXPECT_FALSE(*store.save_stage_event("n1", event, at(2)));
  event.event = "n1-boot-2";
  EXPECT_TRUE(*store.save_stage_event("n1", event, at(3)));
}

TEST(Store, LastVerificationOfEachNodeAndReplica) {
  Folder folder;
  auto store = open(folder);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    protocol::VerifyDone done;
    done.shards = i;
    ASSERT_TRUE(store.save_verification({"n1", "a", at(i), done}).ok());
  }
  protocol::VerifyDone other;
  other.findings.push_back(finding(Code::HASH_MISMATCH, "n2", "f", "differs"));
  ASSERT_TRUE(store.save_verification({"n2", "a", at(9), other}).ok());
  const auto last = *store.last_verifications();
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0].done.shards, 3u);
  EXPECT_EQ(last[1].done.findings, other.findings);
}

TEST(Store, DamagedFileIsNamedWithWhatToDoAndLeftAsItIs) {
  Folder folder;
  const std::string path = folder / "troika.sqlite";
  const std::string damage(16384, '\x5a');
  ASSERT_TRUE(platform::write_file_durably(path, damage).ok());
  const auto store = Store::open(path);
  ASSERT_FALSE(store.ok());
  const auto message = store.error().message();
  EXPECT_NE(message.find(path), std::string::npos);
  EXPECT_NE(message.find("learnt again from the agents"), std::string::npos);
  EXPECT_EQ(platform::content_of(path), damage);
}

TEST(Store, NewerFileIsRefused) {
  Folder folder;
  {
    auto store = open(folder);
    ASSERT_TRUE(store.database().execute("PRAGMA user_version = 99").ok());
  }
  EXPECT_FALSE(Store::open(folder / "troika.sqlite").ok());
}

TEST(Store, FullDiskIsAnErrorAndNothingHalfWritten) {
  Folder folder;
  auto store = open(folder);
  ASSERT_TRUE(store.save_replica(replica(1), Term{1}, at(1), "").ok());
  // As a full disk looks to SQLite: no page more.
  ASSERT_TRUE(store.database().execute("PRAGMA max_page_count = 1").ok());
  Status last = Done{};
  std::uint64_t epoch = 2;
  std::uint64_t written = 1;
  for (; epoch < 20000 && last.ok(); ++epoch) {
    last = store.save_replica(replica(epoch), Term{1}, at(2), std::string(2000, 'x'));
    if (last.ok()) written = epoch;
  }
  ASSERT_FALSE(last.ok());
  EXPECT_EQ((*store.replicas())[0].epoch, Epoch{written});
  EXPECT_EQ((*store.epochs("a"))[0].epoch, Epoch{written});
}

}  // namespace
}  // namespace troika::daemon
