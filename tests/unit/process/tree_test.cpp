// Modes 57 and 62: whatever a stage's processes do to get away, they are found and they end.
#include "platform/tree.hpp"

#include <csignal>

#include "platform/cgroup.hpp"
#include "tests/unit/process/wait.hpp"

namespace troika::platform {
namespace {

using std::chrono::seconds;

class TreeTest : public testing::Test {
 protected:
  ~TreeTest() override {
    (void)kill_tree({mark_, 0, "", 0}, seconds{30});
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  Child start(SpawnPlan plan) {
    plan.environment.push_back(std::string(kStageVariable) + "=" + mark_);
    plan.new_session = true;
    auto child = spawn(plan);
    EXPECT_TRUE(child.ok()) << child.error().message();
    return *std::move(child);
  }
  std::size_t members(const TreeQuery& query) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const auto tree = find_tree(query);
    EXPECT_TRUE(tree.ok());
    return tree.ok() ? tree->members.size() : 0;
  }
  TreeQuery by_mark() const { return {mark_, 0, "", 0}; }

  std::string mark_ = "test/" + random_hex(6) + "/a/0/1";
};

TEST_F(TreeTest, FindsADaemonThatForkedTwiceByItsMark) {
  start(shell("(setsid sh -c 'sleep 60 & sleep 60' &) ; exit 0"));
  EXPECT_TRUE(eventually([&] { return members(by_mark()) == 3; }));
  const auto round = kill_tree(by_mark(), seconds{30});
  ASSERT_TRUE(round.ok());
  EXPECT_TRUE(round->left.empty());
  EXPECT_EQ(members(by_mark()), 0u);
}

TEST_F(TreeTest, LeavesOthersAlone) {
  const auto other = spawn(plan_of({"/bin/sleep", "60"}, {std::string(kStageVariable) + "=" + mark_ + "0"}));
  ASSERT_TRUE(other.ok());
  start(shell("sleep 60"));
  EXPECT_TRUE(eventually([&] { return members(by_mark()) >= 1; }));
  ASSERT_TRUE(kill_tree(by_mark(), seconds{30}).ok());
  EXPECT_TRUE(alive(other->id)) << "epoch 10 is not epoch 1";
  (void)signal_process(other->id, SIGKILL);
  wait_status(*other);
}

TEST_F(TreeTest, EndsWhatForksWhileItIsKilled) {
  start(plan_of({PROCESS_DOUBLE, "breed"}));
  EXPECT_TRUE(eventually([&] { return members(by_mark()) > 20; }));
  const auto round = kill_tree(by_mark(), seconds{30});
  ASSERT_TRUE(round.ok());
  EXPECT_TRUE(round->left.empty());
  EXPECT_EQ(members(by_mark()), 0u);
}

TEST_F(TreeTest, CgroupEndsWhatRunsAwayFromItsNumber) {
  const auto cgroup = Cgroup::make("troika-test-" + random_hex(6));
  if (!cgroup.ok()) GTEST_SKIP() << cgroup.error().message();
  auto procs = cgroup->open_procs();
  ASSERT_TRUE(procs.ok());
  auto plan = plan_of({PROCESS_DOUBLE, "run-away"});
  plan.cgroup_procs = procs->get();
  const Child child = start(plan);
  EXPECT_TRUE(eventually([&] { return !alive(child.id); })) << "its first number is given up";
  EXPECT_TRUE(eventually([&] { return !cgroup->members()->empty(); }));
  const auto round = kill_tree({mark_, 0, cgroup->path(), 0}, seconds{30});
  ASSERT_TRUE(round.ok());
  EXPECT_TRUE(round->left.empty());
  EXPECT_TRUE(eventually([&] { return cgroup->remove().ok(); }));
}

TEST_F(TreeTest, AZombieWhoseThreadsGoOnIsAlive) {
  const Child child = start(plan_of({PROCESS_DOUBLE, "leader-exits"}));
  EXPECT_TRUE(eventually([&] {
    const auto stat = read_stat(child.id.pid);
    return stat.ok() && stat->state == 'Z';
  }));
  EXPECT_TRUE(alive(child.id));
  EXPECT_EQ(members(by_mark()), 1u) << "its environment is read through the thread that goes on";
  const auto round = kill_tree(by_mark(), seconds{30});
  ASSERT_TRUE(round.ok());
  EXPECT_TRUE(round->left.empty());
}

TEST_F(TreeTest, FindsByDescentWhatHidesItsEnvironment) {
  // env -i: the mark is gone from the environment, the descent is not.
  start(shell("env -i sleep 60 & wait"));
  const TreeQuery query{mark_, ::getpid(), "", 0};
  EXPECT_TRUE(eventually([&] { return members(query) == 2; }));
  const auto round = kill_tree(query, seconds{30});
  ASSERT_TRUE(round.ok());
  EXPECT_TRUE(round->left.empty());
}

// Kernel threads have no environment; nothing of them is hidden.
TEST_F(TreeTest, NothingIsHiddenFromRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  const auto tree = find_tree(by_mark());
  ASSERT_TRUE(tree.ok());
  EXPECT_TRUE(tree->unreadable.empty()) << "process " << tree->unreadable.front();
}

TEST_F(TreeTest, NothingOlderThanTheStageIsOfIt) {
  const Child child = start(shell("sleep 60"));
  EXPECT_TRUE(eventually([&] { return members(by_mark()) >= 1; }));
  const auto tree = find_tree({mark_, 0, "", child.id.start + 100000});
  ASSERT_TRUE(tree.ok());
  EXPECT_TRUE(tree->members.empty());
}

}  // namespace
}  // namespace troika::platform
