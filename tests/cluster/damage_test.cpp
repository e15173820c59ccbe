// A damaged store and a full disk: a clear error, nothing lost, no crash.
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "platform/files.hpp"
#include "tests/cluster/cluster.hpp"

namespace troika::local {
namespace {

using demo::all_connected;
using demo::all_serve;

class Damage : public ClusterTest {
 protected:
  std::string leader_log() const {
    const auto text = platform::read_file(cluster_->layout().log("troikad"), kMaxFile);
    return text.ok() ? *text : "";
  }
};

TEST_F(Damage, ACorruptStoreIsRefusedAndLeftAsItIs) {
  make();
  const std::string path = cluster_->layout().leader_state() + "/troika.sqlite";
  std::string garbage;
  for (int i = 0; i < 9000; ++i)
    garbage += static_cast<char>(i * 7 + i / 256);
  ASSERT_TRUE(platform::write_file_durably(path, garbage).ok());
  ASSERT_TRUE(cluster_->start_leader().ok());
  const auto ended = cluster_->children().wait(cluster_->leader(), patience(std::chrono::seconds{30}));
  ASSERT_TRUE(ended) << "it runs";
  EXPECT_EQ(text(*ended), "exit 2");
  EXPECT_NE(leader_log().find(path), std::string::npos) << leader_log();
  EXPECT_EQ(*platform::read_file(path, kMaxFile), garbage);
  EXPECT_TRUE(cluster_->running().empty());
}

TEST_F(Damage, AStoreDamagedUnderARunningClusterStopsTheNextLeaderAndNothingElse) {
  make();
  start();
  serve();
  const auto stages = demo::running_stages(status());
  kill(cluster_->leader());
  const std::string path = cluster_->layout().leader_state() + "/troika.sqlite";
  // The store is two files: a sound write-ahead log would mend what is damaged beside it.
  const auto good = platform::read_file(path, kMaxFile);
  const auto good_log = platform::read_file(path + "-wal", kMaxFile);
  ASSERT_TRUE(good.ok() && good_log.ok());
  const std::string garbage = "this is no database\n" + std::string(8192, 'x');
  for (const char* const file : {"", "-wal"})
    ASSERT_TRUE(platform::write_file_durably(path + file, garbage).ok());
  ASSERT_TRUE(cluster_->start_leader().ok());
  const auto ended = cluster_->children().wait(cluster_->leader(), patience(std::chrono::seconds{30}));
  ASSERT_TRUE(ended) << "it runs";
  EXPECT_EQ(text(*ended), "exit 2");
  EXPECT_TRUE(ask().whole()) << "the gateway goes on";
  // Mended, the next leader adopts what runs.
  EXPECT_EQ(*platform::read_file(path, kMaxFile), garbage);
  ASSERT_TRUE(platform::write_file_durably(path, *good).ok());
  ASSERT_TRUE(platform::write_file_durably(path + "-wal", *good_log).ok());
  ASSERT_TRUE(cluster_->start_leader().ok());
  const auto after = wait("all adopted", [](const auto& s) { return all_connected(s) && all_serve(s); });
  EXPECT_EQ(demo::running_stages(after), stages);
  end();
}

// The leader's state on a small file system of its own.
class FullDisk : public Damage {
 protected:
  void SetUp() override {
    Damage::SetUp();
    make();
    state_ = cluster_->layout().leader_state();
    if (::mount("tmpfs", state_.c_str(), "tmpfs", 0, "size=3m") != 0) {
      const std::string why = std::strerror(errno);
      state_.clear();
      GTEST_SKIP() << "a small file system cannot be mounted here (" << why << "): a full disk was not tried";
    }
  }
  void TearDown() override {
    if (!state_.empty() && cluster_) {
      (void)kill_all(cluster_->layout().root, patience(std::chrono::seconds{20})).ok();
      EXPECT_EQ(::umount2(state_.c_str(), MNT_DETACH), 0) << std::strerror(errno);
    }
    Damage::TearDown();
  }

  void fill() const {
    std::ofstream out(state_ + "/ballast", std::ios::binary | std::ios::app);
    const std::string block(4096, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void make_room() const { ASSERT_TRUE(std::filesystem::remove(state_ + "/ballast")); }

  std::string state_;
};

TEST_F(FullDisk, WhileServingNoRequestPassesUnrecordedAndNothingIsLost) {
  start();
  serve();
  EXPECT_TRUE(ask().whole());
  const auto before = status();
  fill();
  // Recorded before it is passed on: what cannot be recorded is refused, clearly, and reaches no engine.
  const auto count = [&] {
    return *demo::stage_counter(*cluster_, demo::routed(before), "troika_stage_requests_total");
  };
  bool refused = false;
  for (int i = 0; i < 200 && !refused; ++i) {  // SQLite's log may have room for some more
    const double requests = count();
    const auto outcome = ask(1);
    ASSERT_TRUE(outcome.reply) << outcome.trouble;
    refused = outcome.reply->status >= 500;
    if (refused) {
      EXPECT_EQ(count(), requests) << "it reached an engine";
      EXPECT_NE(error_code_of(outcome.refusal), "") << outcome.refusal;
    } else {
      EXPECT_TRUE(outcome.whole()) << demo::described(outcome);
    }
  }
  EXPECT_TRUE(refused);
  for (const auto& [stage, process] : demo::running_stages(before))
    EXPECT_TRUE(alive(static_cast<pid_t>(process.pid))) << stage;
  make_room();
  // The leader may have ended over it, as it must not go on without its store; then it is started again.
  if (cluster_->children().ended(cluster_->leader())) {
    ASSERT_TRUE(cluster_->start_leader().ok());
  }
  const auto after = wait("all serves", [](const auto& s) {
    return all_connected(s) && all_serve(s) && !demo::routed(s).empty();
  });
  EXPECT_EQ(demo::running_stages(after), demo::running_stages(before));
  // What was refused for want of a record has used up its place of the rate, so one more may be refused for
  // that.
  const Status again = cluster_->wait_until(
      "a request is answered", [&] { return ask().whole(); }, patience(std::chrono::seconds{30}));
  EXPECT_TRUE(again.ok()) << again.error().message();
  const auto stopped = cluster_->command(protocol::Verb::Stop, "");
  EXPECT_TRUE(stopped.ok()) << stopped.error.message();
}

TEST_F(FullDisk, AtAStartTheLeaderSaysSoAndEnds) {
  fill();
  ASSERT_TRUE(cluster_->start_leader().ok());
  const auto ended = cluster_->children().wait(cluster_->leader(), patience(std::chrono::seconds{30}));
  ASSERT_TRUE(ended) << "it runs without a store";
  EXPECT_EQ(ended->signal, 0) << text(*ended);
  EXPECT_NE(ended->code, 0);
  const std::string log = leader_log();
  EXPECT_TRUE(log.find("full") != std::string::npos || log.find("No space left") != std::string::npos) << log;
  make_room();
  start();
  serve();
}

}  // namespace
}  // namespace troika::local
