// Waiting for a condition, with a limit that only a broken product reaches.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "platform/process.hpp"
#include "platform/procfs.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::platform {

inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::seconds limit = std::chrono::seconds{30}) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

inline bool alive(const ProcessId& id) {
  const auto stat = read_stat(id.pid);
  return stat.ok() && stat->id == id && stat->alive();
}

inline SpawnPlan plan_of(std::vector<std::string> argv, std::vector<std::string> environment = {}) {
  SpawnPlan plan;
  plan.argv = std::move(argv);
  plan.environment = std::move(environment);
  plan.environment.emplace_back("PATH=/usr/bin:/bin");
  return plan;
}

inline SpawnPlan shell(const std::string& script, std::vector<std::string> environment = {}) {
  return plan_of({"/bin/sh", "-c", script}, std::move(environment));
}

inline int wait_status(const Child& child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child.id.pid, &status, 0), child.id.pid);
  return status;
}

}  // namespace troika::platform
