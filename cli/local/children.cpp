#include "cli/local/children.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "platform/process.hpp"

extern char** environ;

namespace troika::local {
namespace {

constexpr Duration kReapEvery = std::chrono::milliseconds{20};

std::vector<std::string> environment_with(const std::map<std::string, std::string>& added) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!added.contains(std::string(text.substr(0, text.find('='))))) out.emplace_back(text);
  }
  for (const auto& [key, value] : added)
    out.push_back(key + "=" + value);
  return out;
}

}  // namespace

std::string text(const Ended& ended) {
  if (ended.signal == 0) return "exit " + std::to_string(ended.code);
  return "signal " + std::to_string(ended.signal) + " (" + ::strsignal(ended.signal) + ")";
}

Children::Children() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  reaper_ = std::thread([this] { reap(); });
}

Children::~Children() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  reaper_.join();
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

Result<pid_t> Children::spawn(const Launch& launch) {
  const platform::UniqueFd log(::open(launch.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log) return system_error("open", launch.log, errno);
  platform::SpawnPlan plan;
  plan.argv = {launch.program};
  plan.argv.insert(plan.argv.end(), launch.arguments.begin(), launch.arguments.end());
  plan.environment = environment_with(launch.environment);
  plan.output = plan.error = log.get();
  plan.new_session = true;
  // Under the lock: a child that ends at once must not be recorded before its number is known to be new.
  const std::lock_guard lock(mutex_);
  TROIKA_TRY(child, platform::spawn(plan));
  ended_.erase(child.id.pid);
  return pid_t{child.id.pid};
}

std::optional<Ended> Children::ended(pid_t pid) const {
  const std::lock_guard lock(mutex_);
  const auto found = ended_.find(pid);
  return found == ended_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Ended> Children::wait(pid_t pid, Duration limit) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return ended_.contains(pid); });
  const auto found = ended_.find(pid);
  return found == ended_.end() ? std::nullopt : std::optional(found->second);
}

void Children::reap() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    siginfo_t info{};
    while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
      const bool exited = info.si_code == CLD_EXITED;
      ended_[info.si_pid] = exited ? Ended{info.si_status, 0} : Ended{0, info.si_status};
      info = {};
      changed_.notify_all();
    }
    changed_.wait_for(lock, kReapEvery, [&] { return stop_; });
  }
}

}  // namespace troika::local
