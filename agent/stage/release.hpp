// Is anything left of a stage? Modes 57, 58, 59, 62; case D29. "Stopped" is said only after looking.
#pragma once

#include <string>
#include <vector>

#include "agent/stage/identity.hpp"
#include "platform/tree.hpp"
#include "vocabulary/finding.hpp"

namespace troika::agent {

struct ReleaseQuery {
  std::string node;
  StageKey key;
  platform::TreeQuery tree;
  std::vector<std::string> addresses;  // host:port that the stage listened on
  std::string shared_memory;           // prefix of its files in /dev/shm; removed when no process is left
};

struct Release {
  enum class Verdict { Released, Left, CannotTell };
  Verdict verdict = Verdict::CannotTell;
  std::vector<platform::ProcessId> left;
  std::vector<Finding> findings;  // NOT_RELEASED with the pids, CANNOT_TELL with what could not be looked at
};

// One look; kills nothing.
Release look_for_remains(const ReleaseQuery& query);

// The finding for processes that are left.
Finding not_released(const std::string& node, const StageKey& key,
                     const std::vector<platform::ProcessId>& left);

}  // namespace troika::agent
