// All processes of a stage, whatever they did to get away: descendants of its keeper (a subreaper), carriers
// of its mark in their environment, members of its cgroup. Modes 57 and 62.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "platform/process.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::platform {

// The variable that every process of a stage inherits: CLUSTER/NODE/REPLICA/RANK/EPOCH.
inline constexpr const char* kStageVariable = "TROIKA_STAGE";

struct TreeQuery {
  std::string mark;              // value of TROIKA_STAGE; empty: do not look for it
  int ancestor = 0;              // descendants of this process, itself not; 0: do not look for them
  std::string cgroup;            // path; empty: none
  std::uint64_t not_before = 0;  // processes that started earlier (ticks since boot) cannot be of it
};

struct Tree {
  std::vector<ProcessId> members;
  std::vector<int> unreadable;  // could be members: their environment may not be read
};

Result<Tree> find_tree(const TreeQuery& query);

struct KillRound {
  std::size_t signalled = 0;
  std::vector<ProcessId> left;  // seen alive in this round; they got SIGKILL
  std::vector<int> unreadable;
};
// One pass: SIGKILL to all that is found. To be repeated, after waiting for those that were hit, until two
// passes in a row find nothing (what forks while it is looked for is found in the next pass).
Result<KillRound> kill_round(const TreeQuery& query);

// Passes until the tree is empty twice in a row or `limit` has passed; blocks. What is left is what did not
// die.
Result<KillRound> kill_tree(const TreeQuery& query, Duration limit);

// Every process whose mark starts with `prefix` ("CLUSTER/NODE/").
struct Marked {
  ProcessId id;
  std::string mark;
};
Result<std::vector<Marked>> find_marked(const std::string& prefix);

}  // namespace troika::platform
