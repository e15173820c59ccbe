#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstddef>

#include "tests/unit/process/wait.hpp"

namespace troika::platform {
namespace {

// Runs and returns what was written to standard output.
std::string output_of(SpawnPlan plan) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  plan.output = ends[1];
  auto child = spawn(plan);
  ::close(ends[1]);
  EXPECT_TRUE(child.ok()) << child.error().message();
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(ends[0]);
  if (child.ok()) wait_status(*child);
  return text;
}

TEST(Spawn, GivesWordsEnvironmentAndExitCode) {
  EXPECT_EQ(output_of(plan_of({"/bin/echo", "a b", "", "c'd"})), "a b  c'd\n");
  SpawnPlan plan;
  plan.argv = {"/usr/bin/env"};
  plan.environment = {"ONLY=this"};
  EXPECT_EQ(output_of(plan), "ONLY=this\n");
  const auto child = spawn(shell("exit 7"));
  ASSERT_TRUE(child.ok());
  const int status = wait_status(*child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Spawn, PassesOnNoDescriptorButThree) {
  const int leak = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as libraries do
  ASSERT_GE(leak, 3);
  EXPECT_EQ(output_of(shell(
                "for f in 0 1 2 3 4 5 6 7 8 9 10 11 12; do [ -e /proc/$$/fd/$f ] && echo $f; done; true")),
            "0\n1\n2\n");
  ::close(leak);
}

TEST(Spawn, ChildHasDefaultSignals) {
  ::signal(SIGUSR1, SIG_IGN);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  const std::string status = output_of(plan_of({"/bin/cat", "/proc/self/status"}));
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::signal(SIGUSR1, SIG_DFL);
  EXPECT_NE(status.find("SigBlk:\t0000000000000000"), std::string::npos) << status;
  EXPECT_NE(status.find("SigIgn:\t0000000000000000"), std::string::npos) << status;
}

TEST(Spawn, NamesProgramAndReasonWhenItCannotExecute) {
  const auto missing = spawn(plan_of({"/no/such/program"}));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message(), "cannot execute /no/such/program: No such file or directory");
  const Folder folder;
  ASSERT_TRUE(write_file_durably(folder / "data", "no program").ok());
  const auto data = spawn(plan_of({folder / "data"}));
  ASSERT_FALSE(data.ok());
  EXPECT_NE(data.error().message().find("data: Permission denied"), std::string::npos);
  auto plan = shell("true");
  plan.directory = "/no/such/folder";
  EXPECT_FALSE(spawn(plan).ok());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(Spawn, PidfdTellsTheEnd) {
  const auto child = spawn(shell("read x"));
  ASSERT_TRUE(child.ok());
  pollfd poll{child->pidfd.get(), POLLIN, 0};
  wait_status(*child);
  EXPECT_EQ(::poll(&poll, 1, 30'000), 1);
}

// qemu-user and the seccomp filters of some containers have no clone3.
TEST(Spawn, GoesOnWithoutClone3) {
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof rules / sizeof rules[0], rules};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
      ::_exit(99);
    const auto child = spawn(shell("exit 5"));
    int status = 0;
    if (!child.ok() || !child->pidfd || ::waitpid(child->id.pid, &status, 0) != child->id.pid) ::_exit(1);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 99) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

TEST(Signal, HitsOnlyTheProcessThatIsMeant) {
  const auto child = spawn(plan_of({"/bin/sleep", "60"}));
  ASSERT_TRUE(child.ok());
  // The same number with another start time: a process that is gone, its number given to somebody else.
  const auto other = signal_process({child->id.pid, child->id.start + 1}, SIGKILL);
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(*other);
  EXPECT_TRUE(alive(child->id));
  const auto sent = signal_process(child->id, SIGKILL);
  ASSERT_TRUE(sent.ok());
  EXPECT_TRUE(*sent);
  const int status = wait_status(*child);
  EXPECT_TRUE(WIFSIGNALED(status));
  const auto late = signal_process(child->id, SIGKILL);
  ASSERT_TRUE(late.ok());
  EXPECT_FALSE(*late);
}

}  // namespace
}  // namespace troika::platform
