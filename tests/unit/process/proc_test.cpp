#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>

#include "platform/cgroup.hpp"
#include "platform/ports.hpp"
#include "platform/tree.hpp"
#include "tests/unit/process/wait.hpp"

namespace troika::platform {
namespace {

TEST(ProcessStat, ReadsNamesThatLookLikeItsForm) {
  const Folder folder;
  const std::string program = folder / "a) S 1 (b";
  ASSERT_EQ(::system(("cp /bin/sleep '" + program + "'").c_str()), 0);
  const auto child = spawn(plan_of({program, "60"}));
  ASSERT_TRUE(child.ok()) << child.error().message();
  // The name changes with exec, which the spawning process does not wait for on every kernel.
  EXPECT_TRUE(eventually([&] {
    const auto stat = read_stat(child->id.pid);
    return stat.ok() && stat->command == "a) S 1 (b" && stat->parent == ::getpid() && stat->id == child->id;
  }));
  (void)signal_process(child->id, SIGKILL);
  wait_status(*child);
  EXPECT_EQ(read_stat(child->id.pid).error().reason, "ended");
}

TEST(Environment, FindsAVariableByItsWholeName) {
  const auto child = spawn(plan_of({"/bin/sleep", "60"}, {"XTROIKA_STAGE=no", "TROIKA_STAGE=c/n/a/0/7"}));
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE(eventually([&] { return read_variable(child->id.pid, kStageVariable).value == "c/n/a/0/7"; }));
  EXPECT_EQ(read_variable(child->id.pid, "TROIKA").seen, Variable::Seen::Absent);
  const auto marked = find_marked("c/n/");
  ASSERT_TRUE(marked.ok());
  ASSERT_EQ(marked->size(), 1u);
  EXPECT_EQ((*marked)[0].id, child->id);
  EXPECT_EQ((*marked)[0].mark, "c/n/a/0/7");
  (void)signal_process(child->id, SIGKILL);
  wait_status(*child);
  EXPECT_EQ(read_variable(child->id.pid, kStageVariable).seen, Variable::Seen::Ended);
}

TEST(Cgroup, FindsWhereItMayBeMade) {
  const std::string mountinfo =
      "24 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "25 24 0:23 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
      "26 24 0:24 / /sys/fs/cgroup/uni\\040fied rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(cgroup2_mounts(mountinfo), std::vector<std::string>{"/sys/fs/cgroup/uni fied"});
  EXPECT_EQ(cgroup2_path("9:name=systemd:/\n0::/system.slice/troika-agent.service\n"),
            "/system.slice/troika-agent.service");
  EXPECT_EQ(cgroup2_path("9:name=systemd:/\n"), "");
}

TEST(Cgroup, HoldsAndKillsWhatForksInIt) {
  const auto cgroup = Cgroup::make("troika-test-" + random_hex(6));
  if (!cgroup.ok()) GTEST_SKIP() << cgroup.error().message();
  auto procs = cgroup->open_procs();
  ASSERT_TRUE(procs.ok());
  auto plan = shell("sleep 60 & sleep 60 & wait", {});
  plan.cgroup_procs = procs->get();
  const auto child = spawn(plan);
  ASSERT_TRUE(child.ok()) << child.error().message();
  EXPECT_TRUE(eventually([&] { return cgroup->members()->size() == 3; }));
  EXPECT_FALSE(cgroup->remove().ok());
  if (!cgroup->kill().ok()) (void)kill_tree({"", 0, cgroup->path(), 0}, std::chrono::seconds{30});
  wait_status(*child);
  EXPECT_TRUE(eventually([&] { return cgroup->remove().ok(); }));
  EXPECT_EQ(Cgroup::open(cgroup->path()).error().reason, "gone");
}

TEST(Pressure, IsPercentOrSaysThatItIsNotTold) {
  const Folder folder;
  EXPECT_EQ(read_memory_pressure(folder.path()).some, -1);
  ASSERT_TRUE(make_directories(folder / "proc/pressure").ok());
  // Case C07.
  ASSERT_TRUE(write_file_durably(folder / "proc/pressure/memory",
                                 "some avg10=62.10 avg60=1.00 avg300=0.00 total=1\n"
                                 "full avg10=41.00 avg60=1.00 avg300=0.00 total=1\n")
                  .ok());
  EXPECT_DOUBLE_EQ(read_memory_pressure(folder.path()).some, 62.10);
  EXPECT_DOUBLE_EQ(read_memory_pressure(folder.path()).full, 41.00);
}

// Mode 59, case D13.
TEST(Ports, NamesWhoListens) {
  const UniqueFd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const PortState taken = look_at_port("127.0.0.1", port);
  EXPECT_EQ(taken.kind, PortState::Kind::Taken);
  EXPECT_EQ(taken.pid, ::getpid());
  EXPECT_NE(taken.command.find("unit_process"), std::string::npos);
  // A listener on one address leaves the others free.
  EXPECT_EQ(look_at_port("127.0.0.2", port).kind, PortState::Kind::Free);
  EXPECT_EQ(look_at_port("0.0.0.0", port).kind, PortState::Kind::Taken);
  EXPECT_EQ(look_at_port("198.51.100.1", port).kind, PortState::Kind::CannotTell);
}

}  // namespace
}  // namespace troika::platform
