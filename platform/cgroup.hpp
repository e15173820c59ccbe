// A cgroup v2 for a stage: what is in it cannot leave by forking, and dies by one write.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "platform/unique_fd.hpp"
#include "vocabulary/result.hpp"

namespace troika::platform {

class Cgroup {
 public:
  // Makes NAME below this process's own cgroup, in any cgroup2 mount where that may be written. An error
  // where there is none: the caller then does without.
  static Result<Cgroup> make(std::string_view name);
  // One that was made before. An error with reason "gone" when it has been removed.
  static Result<Cgroup> open(const std::string& path);

  const std::string& path() const { return path_; }
  // For SpawnPlan::cgroup_procs.
  Result<UniqueFd> open_procs() const;
  // Every process in it and below it.
  Result<std::vector<int>> members() const;
  // SIGKILL to everything in it and below it, forks included (Linux 5.14).
  Status kill() const;
  // With those below it; an error while processes are in it.
  Status remove() const;

 private:
  explicit Cgroup(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Mount points of cgroup2 in the text of /proc/self/mountinfo, octal escapes resolved.
std::vector<std::string> cgroup2_mounts(std::string_view mountinfo);
// The path of the "0::" line in the text of /proc/self/cgroup; empty: none.
std::string cgroup2_path(std::string_view cgroup);

}  // namespace troika::platform
