#include "platform/process.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "platform/procfs.hpp"

namespace troika::platform {
namespace {

// Steps of the child before it executes; the index travels to the parent with errno.
constexpr std::array<const char*, 7> kSteps{"set the parent death signal for",
                                            "start a session for",
                                            "join the cgroup of",
                                            "enter the directory of",
                                            "connect the output of",
                                            "execute",
                                            ""};
enum Step : int { kDeathSignal, kSession, kCgroup, kDirectory, kDescriptors, kExecute };

struct Failure {
  int step;
  int error;
};

[[noreturn]] void fail(int report, Step step, int error) {
  const Failure failure{step, error};
  // The parent reads end of file where this cannot be written, and then tells from the exit code.
  [[maybe_unused]] const auto written = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

// Puts `from` at 0, 1 or 2. `from` is 3 or higher.
bool place(int from, int to) {
  return ::dup2(from, to) == to;
}

// Runs in the child of a raw clone: system calls only.
[[noreturn]] void run_child(const SpawnPlan& plan, char* const* argv, char* const* environment,
                            const std::array<int, 3>& descriptors, int report, int parent) {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan.parent_death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, plan.parent_death_signal) != 0) fail(report, kDeathSignal, errno);
    // The parent may have ended before the call; nobody would send the signal then.
    if (::getppid() != parent) ::_exit(127);
  }
  if (plan.new_session && ::setsid() < 0) fail(report, kSession, errno);
  if (plan.cgroup_procs >= 0 && ::write(plan.cgroup_procs, "0", 1) != 1) fail(report, kCgroup, errno);
  if (!plan.oom_score_adj.empty()) {
    // Best effort: the value is a preference of the kernel's killer, not a condition of the start.
    const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    [[maybe_unused]] const auto written = ::write(fd, plan.oom_score_adj.data(), plan.oom_score_adj.size());
    ::close(fd);
  }
  if (::chdir(plan.directory.c_str()) != 0) fail(report, kDirectory, errno);
  for (int i = 0; i < 3; ++i) {
    if (!place(descriptors[static_cast<std::size_t>(i)], i)) fail(report, kDescriptors, errno);
  }
  // Descriptors of libraries that forgot O_CLOEXEC must not reach the program; absent in old kernels, then
  // they do.
  ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  ::execve(argv[0], argv, environment);
  fail(report, kExecute, errno);
}

struct Cloned {
  int pid = -1;
  UniqueFd pidfd;
};

// A raw clone gives the runtime of ThreadSanitizer no chance to release its locks in the child.
#if defined(__SANITIZE_THREAD__)
constexpr bool kRawClone = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kRawClone = false;
#else
constexpr bool kRawClone = true;
#endif
#else
constexpr bool kRawClone = true;
#endif

// As fork(); in the child pid is 0.
Result<Cloned> clone_process(const std::string& program) {
  Cloned cloned;
  int pidfd = -1;
  clone_args arguments{};
  arguments.flags = CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  errno = ENOSYS;
  const long pid = kRawClone ? ::syscall(SYS_clone3, &arguments, sizeof arguments) : -1;
  if (pid >= 0) {
    cloned.pid = static_cast<int>(pid);
    cloned.pidfd.reset(pidfd);
    return cloned;
  }
  // EPERM: seccomp filters of containers hide clone3 so.
  if (errno != ENOSYS && errno != EPERM && errno != EINVAL) return system_error("start", program, errno);
  cloned.pid = ::fork();
  if (cloned.pid < 0) return system_error("start", program, errno);
  if (cloned.pid == 0) return cloned;
  cloned.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, cloned.pid, 0)));
  if (!cloned.pidfd) {
    const int error = errno;
    ::kill(cloned.pid, SIGKILL);
    ::waitpid(cloned.pid, nullptr, 0);
    return system_error("open a pidfd of", program, error);
  }
  return cloned;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (const std::string& word : words)
    out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// A duplicate at 3 or higher, so that placing one of 0, 1, 2 does not overwrite another.
Result<UniqueFd> lift(int fd, const UniqueFd& null) {
  UniqueFd lifted{::fcntl(fd >= 0 ? fd : null.get(), F_DUPFD_CLOEXEC, 3)};
  if (!lifted) return system_error("duplicate a descriptor", "", errno);
  return lifted;
}

}  // namespace

Result<Child> spawn(const SpawnPlan& plan) {
  TROIKA_INVARIANT(!plan.argv.empty());
  const std::string& program = plan.argv[0];
  UniqueFd null{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  if (!null) return system_error("open", "/dev/null", errno);
  TROIKA_TRY(input, lift(plan.input, null));
  TROIKA_TRY(output, lift(plan.output, null));
  TROIKA_TRY(error, lift(plan.error, null));
  const std::array<int, 3> descriptors{input.get(), output.get(), error.get()};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("make a pipe for", program, errno);
  UniqueFd report{ends[0]}, report_child{ends[1]};
  // The report must survive the placing of 0, 1 and 2.
  TROIKA_TRY(report_high, lift(report_child.get(), null));
  report_child.reset();
  const std::vector<char*> argv = pointers(plan.argv);
  const std::vector<char*> environment = pointers(plan.environment);
  const int parent = ::getpid();

  auto cloned = clone_process(program);
  if (!cloned.ok()) return cloned.error();
  if (cloned->pid == 0)
    run_child(plan, argv.data(), environment.data(), descriptors, report_high.get(), parent);
  report_high.reset();
  // Read before the child is waited for: its number cannot be another's yet.
  const auto stat = read_stat(cloned->pid);
  Failure failure{};
  ssize_t got = 0;
  do {
    got = ::read(report.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof failure) {
    ::waitpid(cloned->pid, nullptr, 0);
    return system_error(kSteps[static_cast<std::size_t>(failure.step)], program, failure.error);
  }
  if (!stat.ok()) {
    ::kill(cloned->pid, SIGKILL);
    ::waitpid(cloned->pid, nullptr, 0);
    return stat.error();
  }
  return Child{stat->id, std::move(cloned->pidfd)};
}

Result<UniqueFd> open_process(const ProcessId& id) {
  const std::string subject = "process " + std::to_string(id.pid);
  UniqueFd fd{static_cast<int>(::syscall(SYS_pidfd_open, id.pid, 0))};
  if (!fd) {
    if (errno == ESRCH || errno == EINVAL) return Error{"open", subject, "ended"};
    return system_error("open", subject, errno);
  }
  // The pidfd is held, so the number cannot change hands any more: compare now.
  const auto stat = read_stat(id.pid);
  if (!stat.ok()) return stat.error();
  if (stat->id != id) return Error{"open", subject, "ended"};
  return fd;
}

Result<bool> signal_pidfd(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  return system_error("signal", "a process", errno);
}

Result<bool> signal_process(const ProcessId& id, int signal) {
  const auto fd = open_process(id);
  if (!fd.ok()) {
    if (fd.error().reason == "ended") return false;
    return fd.error();
  }
  return signal_pidfd(fd->get(), signal);
}

}  // namespace troika::platform
