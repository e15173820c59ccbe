#include "cli/local/processes.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <optional>
#include <thread>

#include "platform/clock.hpp"
#include "platform/procfs.hpp"

namespace troika::local {
namespace {

constexpr std::size_t kMaxCommand = 4096;

std::string folder(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

std::string program_of(pid_t pid) {
  char target[4096];
  const ssize_t length = ::readlink((folder(pid) + "/exe").c_str(), target, sizeof target);
  if (length <= 0) return {};
  std::string path(target, static_cast<std::size_t>(length));
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path.substr(path.rfind('/') + 1);
}

// By its mark; one of our programs that was started with a clean environment by a path of the directory in
// its command.
bool belongs(const Process& process, const std::string& directory) {
  const platform::Variable mark = platform::read_variable(process.id.pid, kMark);
  if (mark.seen == platform::Variable::Seen::Present) return mark.value == directory;
  // An operator's `troika status` is a visitor.
  return process.program.starts_with("troika-") && process.command.find(directory + "/") != std::string::npos;
}

std::optional<Process> look_at(const platform::ProcessStat& stat, const std::string& directory) {
  if (!stat.alive()) return std::nullopt;
  const int pid = stat.id.pid;
  Process process{stat.id, stat.parent, program_of(pid), platform::command_line(pid, kMaxCommand)};
  if (!belongs(process, directory)) return std::nullopt;
  return process;
}

}  // namespace

std::vector<Process> processes_of(const std::string& directory) {
  std::vector<Process> out;
  const auto all = platform::read_processes();
  if (!all.ok()) return out;
  for (const platform::ProcessStat& stat : *all)
    if (stat.id.pid != ::getpid())
      if (auto process = look_at(stat, directory)) out.push_back(*std::move(process));
  return out;
}

Bytes resident(pid_t pid) {
  // size resident shared ..., in pages
  const auto text = platform::read_virtual_file(folder(pid) + "/statm");
  std::uint64_t pages = 0;
  if (!text.ok()) return Bytes{0};
  const std::size_t space = text->find(' ');
  if (space != std::string::npos)
    std::from_chars(text->data() + space + 1, text->data() + text->size(), pages);
  return Bytes{pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
}

bool alive(pid_t pid) {
  const auto stat = platform::read_stat(pid);
  return stat.ok() && stat->alive();
}

Result<std::vector<Process>> kill_all(const std::string& directory, Duration limit) {
  std::vector<Process> killed;
  const Instant deadline = platform::now() + limit;
  while (true) {
    const std::vector<Process> found = processes_of(directory);
    if (found.empty()) return killed;
    if (platform::now() > deadline) {
      std::string names;
      for (const Process& one : found)
        names += " " + one.program + "[" + std::to_string(one.id.pid) + "]";
      return Error{"end the processes of", directory, "still there after SIGKILL:" + names};
    }
    for (const Process& one : found) {
      // Its start time goes with its number: a stranger that got the number since the scan is not hit.
      if (!platform::signal_process(one.id, SIGKILL).ok()) continue;
      const bool known =
          std::any_of(killed.begin(), killed.end(), [&](const Process& k) { return k.id == one.id; });
      if (!known) killed.push_back(one);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{20});  // between two looks at /proc
  }
}

}  // namespace troika::local
