// The processes that belong to a cluster's directory, found in /proc by the mark that every one of them
// inherits.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "platform/process.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::local {

// The environment variable that carries the cluster's directory.
inline constexpr const char* kMark = "TROIKA_DEMO";

struct Process {
  platform::ProcessId id;
  pid_t parent = 0;
  std::string program;  // base name of what it runs: "troika-stage"
  std::string command;  // its command line, words joined by spaces
};

// Live ones only: a zombie holds nothing and is its parent's to reap. The caller is never among them.
std::vector<Process> processes_of(const std::string& directory);
// Resident memory now; 0 when it is gone.
Bytes resident(pid_t pid);
// False for zombies.
bool alive(pid_t pid);

// SIGKILL to all of them, again and again until none is found (one may be starting another); at most `limit`.
// Returns what was killed; the error names what would not go.
Result<std::vector<Process>> kill_all(const std::string& directory, Duration limit);

}  // namespace troika::local
