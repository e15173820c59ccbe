#include "platform/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>

#include "platform/files.hpp"
#include "platform/procfs.hpp"

namespace troika::platform {
namespace {

// Below a stage's cgroup an engine may make its own; deeper ones are not looked into.
constexpr int kMaxDepth = 8;

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view next_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, value, 8).ptr == text.data() + i + 4) {
      out.push_back(static_cast<char>(value));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// None where the cgroup has just been removed.
Result<std::vector<std::string>> folders_in(const std::string& path) {
  std::vector<std::string> folders;
  TROIKA_TRY(names, list_directory(path, Absent::Empty));
  for (const std::string& name : names) {
    struct stat facts {};
    std::string folder = path + "/" + name;
    if (::lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) folders.push_back(std::move(folder));
  }
  return folders;
}

Status collect(const std::string& path, int depth, std::vector<int>& pids) {
  const auto text = read_virtual_file(path + "/cgroup.procs", 16u << 20);
  if (!text.ok()) return text.error();
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    int pid = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), pid).ec == std::errc{}) pids.push_back(pid);
  }
  if (depth >= kMaxDepth) return Done{};
  TROIKA_TRY(folders, folders_in(path));
  for (const std::string& folder : folders)
    TROIKA_CHECK(collect(folder, depth + 1, pids));
  return Done{};
}

Status remove_below(const std::string& path, int depth) {
  if (depth < kMaxDepth) {
    TROIKA_TRY(folders, folders_in(path));
    for (const std::string& folder : folders)
      TROIKA_CHECK(remove_below(folder, depth + 1));
  }
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) return system_error("remove the cgroup", path, errno);
  return Done{};
}

}  // namespace

std::vector<std::string> cgroup2_mounts(std::string_view mountinfo) {
  std::vector<std::string> out;
  while (!mountinfo.empty()) {
    std::string_view line = next_line(mountinfo);
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view source = line.substr(dash + 3);
    if (next_word(source) != "cgroup2") continue;
    for (int i = 0; i < 4; ++i)
      next_word(line);
    out.push_back(unescape(next_word(line)));
  }
  return out;
}

std::string cgroup2_path(std::string_view cgroup) {
  while (!cgroup.empty()) {
    const std::string_view line = next_line(cgroup);
    if (line.substr(0, 3) == "0::") return std::string(line.substr(3));
  }
  return {};
}

Result<Cgroup> Cgroup::make(std::string_view name) {
  TROIKA_TRY(mountinfo, read_virtual_file("/proc/self/mountinfo", 4u << 20));
  TROIKA_TRY(own, read_virtual_file("/proc/self/cgroup"));
  std::string below = cgroup2_path(own);
  if (below.empty()) return Error{"make the cgroup", std::string(name), "this process is in no cgroup v2"};
  if (below == "/") below.clear();
  Error last{"make the cgroup", std::string(name), "no cgroup v2 is mounted"};
  for (const std::string& mount : cgroup2_mounts(mountinfo)) {
    const std::string path = mount + below + "/" + std::string(name);
    if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) {
      Cgroup made{path};
      if (auto procs = made.open_procs(); procs.ok()) return made;
      ::rmdir(path.c_str());
      last = Error{"join the cgroup", path, "not allowed"};
    } else {
      last = system_error("make the cgroup", path, errno);
    }
  }
  return last;
}

Result<Cgroup> Cgroup::open(const std::string& path) {
  struct stat facts {};
  if (::stat((path + "/cgroup.procs").c_str(), &facts) != 0) {
    if (errno == ENOENT) return Error{"open the cgroup", path, "gone"};
    return system_error("open the cgroup", path, errno);
  }
  return Cgroup{path};
}

Result<UniqueFd> Cgroup::open_procs() const {
  UniqueFd fd{::open((path_ + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC)};
  if (!fd) return system_error("open", path_ + "/cgroup.procs", errno);
  return fd;
}

Result<std::vector<int>> Cgroup::members() const {
  std::vector<int> pids;
  TROIKA_CHECK(collect(path_, 0, pids));
  return pids;
}

Status Cgroup::kill() const {
  const std::string path = path_ + "/cgroup.kill";
  const UniqueFd fd{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!fd) return system_error("open", path, errno);
  if (::write(fd.get(), "1", 1) != 1) return system_error("write", path, errno);
  return Done{};
}

Status Cgroup::remove() const {
  return remove_below(path_, 0);
}

}  // namespace troika::platform
