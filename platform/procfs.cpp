#include "platform/procfs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>

namespace troika::platform {
namespace {

// The kernel allows 2 MiB of arguments and environment in most set-ups; a longer one is searched as far as
// this.
constexpr std::size_t kLongestEnvironment = 4u << 20;

std::string proc_path(int pid, std::string_view file) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(file);
}

template <class T>
bool number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// Field `index` (from 0) of text separated by single spaces.
std::string_view field(std::string_view text, std::size_t index) {
  for (; index > 0; --index) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return {};
    text.remove_prefix(space + 1);
  }
  return text.substr(0, text.find(' '));
}

std::string_view after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  return at == std::string_view::npos ? std::string_view{} : text.substr(at + key.size());
}

double average_of(std::string_view text, std::string_view line) {
  const std::string_view figures = after(after(text, line), "avg10=");
  if (figures.empty()) return -1;
  return std::strtod(std::string(figures.substr(0, figures.find(' '))).c_str(), nullptr);
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// The first thread of a process may have ended while others go on; the environment is then read through one
// of those.
std::string live_task(int pid) {
  const std::string tasks = proc_path(pid, "task");
  const Directory directory{::opendir(tasks.c_str())};
  if (!directory) return {};
  while (const dirent* entry = ::readdir(directory.get())) {
    int task = 0;
    if (number(entry->d_name, task) && task != pid) return tasks + "/" + entry->d_name + "/environ";
  }
  return {};
}

// As read_virtual_file, the error as a number; 0: good.
int read_whole(const std::string& path, std::size_t limit, std::string& text) {
  text.clear();
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (!fd) return errno;
  std::array<char, 16384> buffer;
  while (text.size() < limit) {
    const ssize_t got = ::read(fd.get(), buffer.data(), std::min(buffer.size(), limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return 0;
}

}  // namespace

Result<std::string> read_virtual_file(const std::string& path, std::size_t limit) {
  std::string text;
  if (const int error = read_whole(path, limit, text); error != 0) return system_error("read", path, error);
  return text;
}

Result<ProcessStat> read_stat(int pid) {
  const std::string path = proc_path(pid, "stat");
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  const Error ended{"read", path, "ended"};
  if (!fd) {
    if (errno == ENOENT || errno == ESRCH) return ended;
    return system_error("open", path, errno);
  }
  char buffer[1024];  // 52 fields of at most 20 digits
  ssize_t got = 0;
  do {
    got = ::read(fd.get(), buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == ESRCH ? ended : system_error("read", path, errno);
  const std::string_view text{buffer, static_cast<std::size_t>(got)};
  // The name stands in parentheses and may hold anything, parentheses and spaces too: the last ')' ends it.
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close + 2 >= text.size())
    return Error{"read", path, "not in the form of the kernel"};
  ProcessStat stat;
  stat.id.pid = pid;
  stat.command = std::string(text.substr(open + 1, close - open - 1));
  const std::string_view rest = text.substr(close + 2);  // from field 3 on
  stat.state = rest[0];
  std::uint32_t flags = 0;
  if (!number(field(rest, 1), stat.parent) || !number(field(rest, 6), flags) ||
      !number(field(rest, 17), stat.tasks) || !number(field(rest, 19), stat.id.start))
    return Error{"read", path, "not in the form of the kernel"};
  constexpr std::uint32_t kKernelThread = 0x00200000;  // PF_KTHREAD
  stat.kernel = (flags & kKernelThread) != 0;
  return stat;
}

Result<std::vector<ProcessStat>> read_processes() {
  const Directory directory{::opendir("/proc")};
  if (!directory) return system_error("open", "/proc", errno);
  std::vector<ProcessStat> all;
  errno = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    int pid = 0;
    if (!number(entry->d_name, pid)) continue;
    auto stat = read_stat(pid);
    if (stat.ok()) all.push_back(*std::move(stat));
    errno = 0;
  }
  if (errno != 0) return system_error("read", "/proc", errno);
  if (all.empty()) return Error{"read", "/proc", "no process in it: is it mounted?"};
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return all;
}

std::string command_line(int pid, std::size_t limit) {
  auto text = read_virtual_file(proc_path(pid, "cmdline"), limit);
  if (!text.ok()) return {};
  while (!text->empty() && text->back() == '\0')
    text->pop_back();
  std::replace(text->begin(), text->end(), '\0', ' ');
  return *std::move(text);
}

Variable read_variable(int pid, std::string_view name) {
  std::string text;
  int error = read_whole(proc_path(pid, "environ"), kLongestEnvironment, text);
  // What has no memory of its own (any more) reads as empty, or, in newer kernels, as no such process: a
  // kernel thread, or a process whose first thread has ended.
  if (error == ESRCH || (error == 0 && text.empty())) {
    error = 0;
    if (const std::string task = live_task(pid); !task.empty())
      error = read_whole(task, kLongestEnvironment, text);
  }
  if (error != 0) {
    const bool ended = error == ESRCH || ::access(proc_path(pid, "stat").c_str(), F_OK) != 0;
    return {ended ? Variable::Seen::Ended : Variable::Seen::Denied, {}};
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    if (entry.size() > name.size() && entry.substr(0, name.size()) == name && entry[name.size()] == '=')
      return {Variable::Seen::Present, std::string(entry.substr(name.size() + 1))};
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  const bool ended = text.empty() && ::access(proc_path(pid, "stat").c_str(), F_OK) != 0;
  return {ended ? Variable::Seen::Ended : Variable::Seen::Absent, {}};
}

MemoryPressure read_memory_pressure(const std::string& root) {
  const auto text = read_virtual_file(root + "/proc/pressure/memory", 4096);
  if (!text.ok()) return {};
  return {average_of(*text, "some "), average_of(*text, "full ")};
}

}  // namespace troika::platform
