// What a keeper promises: the true exit status on disk, nothing of the stage left behind, the stage killable
// whatever happens around it.
#include <sys/mount.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/unit/keeper/rig.hpp"

namespace troika::keeper {
namespace {

TEST_F(KeeperTest, WritesTheExitCodeBeforeItTells) {
  ASSERT_EQ(launch("read x; exit 7"), 0) << words();  // standard input is /dev/null: it ends at once
  EXPECT_TRUE(eventually([&] { return keeper_gone(); }));
  const auto exit = exit_record();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 7);
  EXPECT_EQ(exit->signal, 0);
  EXPECT_FALSE(exit->requested);
  EXPECT_TRUE(tree_gone());
}

TEST_F(KeeperTest, FollowersHearOfTheEndWhenItIsOnDisk) {
  ASSERT_EQ(launch("sleep 60 & wait"), 0) << words();
  Client client{directory()};
  EXPECT_EQ(client.ask("follow"), "ok");
  EXPECT_TRUE(client.line_with("state=running"));
  ASSERT_EQ(::kill(record_->stage.pid, SIGSEGV), 0);
  const auto ended = client.line_with("state=ended");
  ASSERT_TRUE(ended);
  ASSERT_TRUE(exit_record());
  EXPECT_EQ(exit_record()->signal, SIGSEGV);
  EXPECT_FALSE(exit_record()->requested);
  EXPECT_NE(ended->find("signal=11"), std::string::npos) << *ended;
  EXPECT_TRUE(client.line_with("state=cleared"));
  EXPECT_FALSE(client.line()) << "the keeper has nothing more to do";
}

TEST_F(KeeperTest, StopsWithGrace) {
  ASSERT_EQ(launch("trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"), 0);
  Client client{directory()};
  EXPECT_EQ(client.ask("follow"), "ok");
  EXPECT_TRUE(client.line_with("log up"));
  client.send("stop 30000\n");
  EXPECT_TRUE(client.line_with("state=ended"));
  EXPECT_TRUE(eventually([&] { return keeper_gone(); }));
  EXPECT_EQ(exit_record()->code, 0);
  EXPECT_EQ(exit_record()->signal, 0);
  EXPECT_TRUE(exit_record()->requested);
  EXPECT_TRUE(tree_gone());
}

TEST_F(KeeperTest, KillsWhatIgnoresSigtermAfterTheGrace) {
  ASSERT_EQ(launch("trap '' TERM; echo up; while :; do sleep 0.05; done"), 0);
  Client client{directory()};
  EXPECT_EQ(client.ask("follow"), "ok");
  EXPECT_TRUE(client.line_with("log up"));
  const auto start = std::chrono::steady_clock::now();
  client.send("stop 60000\n");
  EXPECT_TRUE(client.line_with("state=stopping"));
  client.send("stop 300\n");  // a shorter grace wins
  EXPECT_TRUE(client.line_with("state=ended"));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds{300});
  EXPECT_EQ(exit_record()->signal, SIGKILL);
  EXPECT_TRUE(exit_record()->requested);
  EXPECT_TRUE(eventually([&] { return tree_gone(); }));
}

// Mode 57.
TEST_F(KeeperTest, LeavesNoDaemonBehind) {
  const std::string unmarked = "sleep 61." + std::to_string(::getpid());  // not another run's of this test
  ASSERT_EQ(launch("(setsid sh -c 'trap \"\" TERM HUP; sleep 60 & sleep 60' &); (env -i " + unmarked +
                   " &); exit 3"),
            0);
  EXPECT_TRUE(eventually([&] { return keeper_gone(); }));
  EXPECT_EQ(exit_record()->code, 3);
  EXPECT_TRUE(tree_gone());
  EXPECT_NE(::system(("pgrep -fx '" + unmarked + "' >/dev/null").c_str()), 0)
      << "without its mark it is found by descent";
  EXPECT_FALSE(std::ifstream(folder_ / kSocketFile).good());
  if (!record_->cgroup.empty()) {
    struct stat facts {};
    EXPECT_NE(::stat(record_->cgroup.c_str(), &facts), 0) << "its cgroup is removed";
  }
}

TEST_F(KeeperTest, KeepsTheEndOfAFloodWithoutAGap) {
  spec_.log_limit = Bytes{256u << 10};
  ASSERT_EQ(launch("seq 1000000 1300000"), 0);
  EXPECT_TRUE(eventually([&] { return keeper_gone(); }));
  EXPECT_EQ(exit_record()->code, 0) << "the stage was never held up";
  const std::string text = log();
  EXPECT_LE(text.size(), spec_.log_limit.count);
  EXPECT_GE(text.size(), spec_.log_limit.count / 2);
  long last = 0;
  std::size_t begin = text.find('\n') + 1;  // the first line may be cut by the limit
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    if (line.find("troika-keeper") != std::string::npos) continue;
    const long number = std::stol(line);
    if (last != 0) {
      ASSERT_EQ(number, last + 1) << "a gap at a rotation";
    }
    last = number;
  }
  EXPECT_EQ(last, 1300000);
}

TEST_F(KeeperTest, DiesWithItsStage) {
  ASSERT_EQ(launch("echo up; sleep 60 & sleep 60"), 0);
  EXPECT_TRUE(eventually([&] { return log().find("up") != std::string::npos; }));
  ASSERT_TRUE(platform::signal_process(record_->keeper, SIGKILL).ok());
  EXPECT_TRUE(eventually([&] { return !platform::alive(record_->stage); })) << "PR_SET_PDEATHSIG";
  EXPECT_FALSE(exit_record());
  // What the stage had started is found by its mark (and its cgroup) by whoever comes next.
  const auto round = platform::kill_tree({spec_.mark, 0, record_->cgroup, 0}, std::chrono::seconds{30});
  ASSERT_TRUE(round.ok());
  EXPECT_TRUE(round->left.empty());
}

TEST_F(KeeperTest, SigtermStopsTheStageFirst) {
  spec_.grace_ms = 30'000;
  ASSERT_EQ(launch("trap 'exit 4' TERM; echo up; while :; do sleep 0.05; done"), 0);
  EXPECT_TRUE(eventually([&] { return log().find("up") != std::string::npos; }));
  ASSERT_TRUE(platform::signal_process(record_->keeper, SIGTERM).ok());
  EXPECT_TRUE(eventually([&] { return keeper_gone(); }));
  EXPECT_EQ(exit_record()->code, 4);
  EXPECT_TRUE(exit_record()->requested);
}

TEST_F(KeeperTest, SupervisesWithoutItsDirectory) {
  ASSERT_EQ(launch("echo up; while :; do sleep 0.05; done"), 0);
  Client client{directory()};
  EXPECT_EQ(client.ask("follow"), "ok");
  EXPECT_TRUE(client.line_with("log up"));
  ASSERT_TRUE(platform::remove_tree(directory()).ok());
  client.send("kill\n");
  const auto ended = client.line_with("state=cleared");
  ASSERT_TRUE(ended);
  EXPECT_NE(ended->find("signal=9"), std::string::npos);
  EXPECT_NE(ended->find("recorded=0"), std::string::npos) << "the exit is told, as it cannot be written";
  client.send("forget\n");
  EXPECT_TRUE(eventually([&] { return keeper_gone(); }));
  EXPECT_TRUE(tree_gone());
}

TEST_F(KeeperTest, AFullDiskCostsOutputNotTheExitStatus) {
  if (::mount("none", directory().c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "no right to mount here";
  spec_.log_limit = Bytes{64u << 20};
  ASSERT_EQ(launch("trap 'exit 9' USR1; seq 1 200000; echo done >&2; while :; do sleep 0.05; done"), 0)
      << words();
  Client client{directory()};
  client.ask("follow");
  EXPECT_TRUE(client.line_with("log done")) << "the output is shown all the same";
  ASSERT_EQ(::kill(record_->stage.pid, SIGUSR1), 0);
  EXPECT_TRUE(eventually([&] { return keeper_gone(); }));
  const auto exit = exit_record();
  ::umount2(directory().c_str(), MNT_DETACH);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 9);
}

TEST_F(KeeperTest, RemovesTheSecretWithTheStage) {
  ASSERT_TRUE(platform::write_file_durably(folder_ / kLinkKeyFile, "secret", 0600).ok());
  spec_.secret = folder_ / kLinkKeyFile;
  ASSERT_EQ(launch("exit 0"), 0);
  EXPECT_TRUE(eventually([&] { return keeper_gone(); }));
  EXPECT_FALSE(std::ifstream(folder_ / kLinkKeyFile).good());
}

TEST_F(KeeperTest, SaysWhyAStageCannotBeStarted) {
  spec_.argv = {"/no/such/engine"};
  EXPECT_EQ(launch(), 1);
  EXPECT_NE(words().find("cannot execute /no/such/engine: No such file or directory"), std::string::npos)
      << words();
  EXPECT_FALSE(record_);
}

TEST_F(KeeperTest, GivesTheStageItsMarkAndNothingOfItsOwn) {
  spec_.argv = {"/usr/bin/env"};
  ASSERT_EQ(launch(), 0);
  EXPECT_TRUE(eventually([&] { return keeper_gone(); }));
  EXPECT_NE(log().find("TROIKA_STAGE=" + spec_.mark + "\n"), std::string::npos);
  EXPECT_EQ(log().find("HOME="), std::string::npos);
}

TEST_F(KeeperTest, IsSmall) {
#if defined(TROIKA_SANITIZED)
  GTEST_SKIP() << "a sanitizer's memory is not the keeper's";
#endif
  ASSERT_EQ(launch("seq 1 100000; sleep 60"), 0);
  EXPECT_TRUE(eventually([&] { return log().find("\n100000\n") != std::string::npos; }));
  const auto status = platform::read_virtual_file("/proc/" + std::to_string(record_->keeper.pid) + "/status");
  ASSERT_TRUE(status.ok());
  const std::size_t at = status->find("VmRSS:");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(std::stol(status->substr(at + 6)), 8192) << "kB, resident";
}

}  // namespace
}  // namespace troika::keeper
