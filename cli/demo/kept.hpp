// What the demo leaves behind on purpose: the facts, and with --keep a cluster that runs on.
#pragma once

#include <cstddef>
#include <string>

#include "cli/demo/story.hpp"
#include "cli/local/local_cluster.hpp"

namespace troika::demo {

inline constexpr const char* kPrefix = "troika-demo";

void tell_how_to_talk(const local::LocalCluster& cluster, const Story& story);
// Empty path: nothing to write.
Status write_facts(const Story& story, const std::string& path);
std::string last_lines(const std::string& path, std::size_t count);

}  // namespace troika::demo
