#include "agent/stage/release.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/stage/addresses.hpp"
#include "platform/files.hpp"
#include "platform/procfs.hpp"

namespace troika::agent {
namespace {

constexpr std::size_t kNamed = 8;  // processes named in a message
constexpr const char* kSharedMemory = "/dev/shm";

std::string pid_list(const std::vector<platform::ProcessId>& processes) {
  std::string out;
  for (const auto& id : processes)
    out += (out.empty() ? "" : " ") + std::to_string(id.pid);
  return out;
}

Finding cannot_tell(const ReleaseQuery& query, const std::string& what,
                    const std::string& remedy =
                        "give the agent the right to look into /proc (root, or "
                        "CAP_SYS_PTRACE; no hidepid)") {
  return finding(Code::CANNOT_TELL, query.node, "release of " + text(query.key),
                 "cannot tell whether " + text(query.key) + " is released: " + what, remedy);
}

void look_at_ports(const ReleaseQuery& query, Release& release) {
  for (const std::string& address : query.addresses) {
    const platform::PortState port = port_state(address);
    switch (port.kind) {
      case platform::PortState::Kind::Free:
        break;
      case platform::PortState::Kind::CannotTell:
        release.verdict = Release::Verdict::CannotTell;
        release.findings.push_back(cannot_tell(query, "port " + address + ": " + port.reason));
        break;
      case platform::PortState::Kind::Taken:
        // None of the stage's processes is left, so a known owner is somebody else: said at the next start.
        if (port.pid != 0) break;
        release.verdict = Release::Verdict::Left;
        release.findings.push_back(finding(Code::NOT_RELEASED, query.node, query.node,
                                           "port " + address + " of " + text(query.key) +
                                               " is still listened on, by a process that cannot be seen",
                                           "find its owner: ss -ltnp", {{"address", address}}));
        break;
    }
  }
}

// Files of this stage's prefix: nobody else uses them, and no process of the stage is left.
void sweep_shared_memory(const ReleaseQuery& query, Release& release) {
  if (query.shared_memory.empty()) return;
  const auto names = platform::list_directory(kSharedMemory, platform::Absent::Empty);
  if (!names.ok()) {
    release.verdict = Release::Verdict::CannotTell;
    release.findings.push_back(
        cannot_tell(query, names.error().message(),
                    std::string("give the agent's user the right to list ") + kSharedMemory));
    return;
  }
  for (const std::string& name : *names) {
    if (!name.starts_with(query.shared_memory)) continue;
    const std::string path = kSharedMemory + ("/" + name);
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) continue;
    release.verdict = Release::Verdict::Left;
    release.findings.push_back(
        finding(Code::NOT_RELEASED, query.node, query.node,
                "cannot remove " + path + " of " + text(query.key) + ": " + std::strerror(errno),
                "remove the file", {{"file", name}}));
  }
}

}  // namespace

Finding not_released(const std::string& node, const StageKey& key,
                     const std::vector<platform::ProcessId>& left) {
  std::string named;
  for (std::size_t i = 0; i < left.size() && i < kNamed; ++i) {
    const auto stat = platform::read_stat(left[i].pid);
    named += (i == 0 ? "" : ", ") + std::to_string(left[i].pid);
    if (stat.ok()) named += " " + stat->command + " in state " + stat->state;
  }
  if (left.size() > kNamed) named += " and " + std::to_string(left.size() - kNamed) + " more";
  return finding(
      Code::NOT_RELEASED, node, node, text(key) + " is not gone: process " + named,
      "a process in state D waits for a device: look at the kernel's log; it is asked to die again and again",
      {{"pids", pid_list(left)}, {"count", static_cast<std::int64_t>(left.size())}});
}

Release look_for_remains(const ReleaseQuery& query) {
  Release release;
  const auto tree = platform::find_tree(query.tree);
  if (!tree.ok()) {
    release.findings.push_back(cannot_tell(query, tree.error().message()));
    return release;
  }
  if (!tree->members.empty()) {
    release.verdict = Release::Verdict::Left;
    release.left = tree->members;
    release.findings.push_back(not_released(query.node, query.key, tree->members));
    return release;
  }
  if (!tree->unreadable.empty()) {
    release.findings.push_back(cannot_tell(
        query,
        "the environment of process " + std::to_string(tree->unreadable.front()) + " may not be read"));
    return release;
  }
  release.verdict = Release::Verdict::Released;
  sweep_shared_memory(query, release);
  look_at_ports(query, release);
  return release;
}

}  // namespace troika::agent
