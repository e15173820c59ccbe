#include "platform/tree.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>

#include "platform/cgroup.hpp"
#include "platform/clock.hpp"
#include "platform/procfs.hpp"

namespace troika::platform {
namespace {

// How long one pass waits for those it hit before it looks again.
constexpr std::chrono::milliseconds kRoundWait{50};
// A dying process of many GiB keeps a pidfd quiet for long; more than this many are not waited for at once.
constexpr std::size_t kMaxWaited = 64;

std::set<int> descendants(const std::vector<ProcessStat>& all, int ancestor) {
  std::multimap<int, int> children;
  for (const ProcessStat& process : all)
    children.emplace(process.parent, process.id.pid);
  std::set<int> found;
  std::vector<int> open{ancestor};
  while (!open.empty()) {
    const int parent = open.back();
    open.pop_back();
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child) {
      if (found.insert(child->second).second) open.push_back(child->second);
    }
  }
  return found;
}

// Those that this process descends from; a stage is never among them. The first process of a machine or
// container often has rights that keep even root from reading its environment.
std::set<int> ancestors(const std::vector<ProcessStat>& all, int pid) {
  std::map<int, int> parents;
  for (const ProcessStat& process : all)
    parents.emplace(process.id.pid, process.parent);
  std::set<int> found;
  for (auto at = parents.find(pid); at != parents.end(); at = parents.find(at->second))
    if (!found.insert(at->second).second) break;  // numbers were reused while they were read
  return found;
}

// A process of another user cannot have been made by ours, unless we are root, who may read everything
// anyway.
bool could_be_ours(int pid) {
  struct stat facts {};
  if (::stat(("/proc/" + std::to_string(pid)).c_str(), &facts) != 0) return false;
  return ::geteuid() == 0 || facts.st_uid == ::geteuid();
}

Result<std::set<int>> cgroup_members(const std::string& path) {
  std::set<int> found;
  if (path.empty()) return found;
  const auto cgroup = Cgroup::open(path);
  if (!cgroup.ok()) {
    if (cgroup.error().reason == "gone") return found;
    return cgroup.error();
  }
  const auto pids = cgroup->members();
  if (pids.ok()) return std::set<int>(pids->begin(), pids->end());
  // Removed between the two steps.
  if (const auto again = Cgroup::open(path); !again.ok() && again.error().reason == "gone") return found;
  return pids.error();
}

void wait_for_end(const std::vector<ProcessId>& processes) {
  std::vector<UniqueFd> held;
  std::vector<pollfd> waits;
  for (const ProcessId& id : processes) {
    if (waits.size() == kMaxWaited) break;
    auto fd = open_process(id);
    if (!fd.ok()) continue;
    waits.push_back({fd->get(), POLLIN, 0});
    held.push_back(*std::move(fd));
  }
  if (!waits.empty()) ::poll(waits.data(), waits.size(), static_cast<int>(kRoundWait.count()));
}

}  // namespace

Result<Tree> find_tree(const TreeQuery& query) {
  TROIKA_TRY(in_cgroup, cgroup_members(query.cgroup));
  TROIKA_TRY(all, read_processes());
  const std::set<int> below = query.ancestor != 0 ? descendants(all, query.ancestor) : std::set<int>{};
  const int self = ::getpid();
  const std::set<int> above = ancestors(all, self);
  Tree tree;
  for (const ProcessStat& process : all) {
    const int pid = process.id.pid;
    if (pid == self || pid == query.ancestor || process.kernel || !process.alive()) continue;
    bool member = below.count(pid) != 0 || in_cgroup.count(pid) != 0;
    if (!member && !query.mark.empty() && process.id.start >= query.not_before) {
      const Variable mark = read_variable(pid, kStageVariable);
      member = mark.seen == Variable::Seen::Present && mark.value == query.mark;
      if (mark.seen == Variable::Seen::Denied && above.count(pid) == 0 && could_be_ours(pid))
        tree.unreadable.push_back(pid);
    }
    if (member) tree.members.push_back(process.id);
  }
  return tree;
}

Result<KillRound> kill_round(const TreeQuery& query) {
  if (!query.cgroup.empty()) {
    // Hits all at once, also what forks right now; where the kernel lacks it the pass below does the same one
    // by one.
    if (const auto cgroup = Cgroup::open(query.cgroup); cgroup.ok()) (void)cgroup->kill();
  }
  TROIKA_TRY(tree, find_tree(query));
  KillRound round;
  round.unreadable = std::move(tree.unreadable);
  for (const ProcessId& id : tree.members) {
    const auto sent = signal_process(id, SIGKILL);
    // Not allowed to signal it: it is left, and the caller names it.
    if (!sent.ok() || *sent) round.left.push_back(id);
    if (sent.ok() && *sent) ++round.signalled;
  }
  return round;
}

Result<KillRound> kill_tree(const TreeQuery& query, Duration limit) {
  const Instant deadline = now() + limit;
  for (int empty_passes = 0;;) {
    TROIKA_TRY(round, kill_round(query));
    empty_passes = round.left.empty() ? empty_passes + 1 : 0;
    if (empty_passes == 2 || (now() >= deadline && !round.left.empty())) return round;
    wait_for_end(round.left);
  }
}

Result<std::vector<Marked>> find_marked(const std::string& prefix) {
  TROIKA_TRY(all, read_processes());
  std::vector<Marked> found;
  for (const ProcessStat& process : all) {
    if (process.id.pid == ::getpid() || !process.alive()) continue;
    Variable mark = read_variable(process.id.pid, kStageVariable);
    if (mark.seen == Variable::Seen::Present && mark.value.compare(0, prefix.size(), prefix) == 0)
      found.push_back({process.id, std::move(mark.value)});
  }
  return found;
}

}  // namespace troika::platform
