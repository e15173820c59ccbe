#include "agent/stage/ended.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "platform/files.hpp"
#include "platform/log.hpp"

namespace troika::agent {
namespace {

// Oldest first.
std::vector<std::string> folders_by_age(const std::string& directory) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  const auto all = platform::list_directory(directory);
  if (!all.ok()) {
    platform::log("what ended before is kept: " + all.error().message());
    return {};
  }
  for (const std::string& name : *all) {
    struct stat facts {};
    if (name.starts_with('.') || ::stat((directory + "/" + name).c_str(), &facts) != 0) continue;
    found.emplace_back(facts.st_ctim.tv_sec * 1'000'000'000 + facts.st_ctim.tv_nsec, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [when, name] : found)
    names.push_back(std::move(name));
  return names;
}

}  // namespace

void keep_as_evidence(const std::string& run_dir, const StageKey& key) {
  const std::string from = run_dir + "/stages/" + folder_of(key);
  const std::string ended = run_dir + "/ended";
  const std::string to = ended + "/" + folder_of(key);
  (void)platform::make_directories(ended, 0700);
  (void)platform::remove_tree(to);
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    if (errno != ENOENT) (void)platform::remove_tree(from);
    return;
  }
  std::vector<std::string> names = folders_by_age(ended);
  for (std::size_t i = 0; i + kKeptEnded < names.size(); ++i)
    (void)platform::remove_tree(ended + "/" + names[i]);
}

}  // namespace troika::agent
