// Starting processes and signalling them without ever hitting another one that got the same number.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "platform/unique_fd.hpp"
#include "vocabulary/result.hpp"

namespace troika::platform {

// A pid is reused; a pid with its start time (field 22 of /proc/PID/stat, clock ticks since boot) is not.
struct ProcessId {
  int pid = 0;
  std::uint64_t start = 0;

  auto operator<=>(const ProcessId&) const = default;
};

struct SpawnPlan {
  std::vector<std::string> argv;         // argv[0] is the program's path, no search
  std::vector<std::string> environment;  // "NAME=VALUE", nothing else is inherited
  std::string directory = "/";
  int input = -1;  // descriptors for 0, 1 and 2; -1: /dev/null
  int output = -1;
  int error = -1;
  bool new_session = false;
  int parent_death_signal = 0;  // sent when the spawning thread ends, 0: none
  int cgroup_procs = -1;        // open cgroup.procs that the child joins before it executes, -1: none
  std::string oom_score_adj;    // written before it executes; empty: inherited
};

struct Child {
  ProcessId id;
  UniqueFd pidfd;  // readable when the child has ended
};

// clone3 with CLONE_PIDFD, or fork and pidfd_open where clone3 is missing. Every descriptor but 0, 1 and 2 is
// closed, signal mask and dispositions are the default. Errors name the step in the child that failed (no
// child is left then).
Result<Child> spawn(const SpawnPlan& plan);

// A pidfd of exactly this process; an error with reason "ended" when it is gone or its number belongs to
// another.
Result<UniqueFd> open_process(const ProcessId& id);
// Signals exactly this process; false: it is gone already.
Result<bool> signal_process(const ProcessId& id, int signal);
// Through a pidfd; false: it is gone already.
Result<bool> signal_pidfd(int pidfd, int signal);

}  // namespace troika::platform
