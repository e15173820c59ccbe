// The names of one stage of one epoch on this node: its mark, its folder, its shared memory.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "vocabulary/names.hpp"
#include "vocabulary/result.hpp"

namespace troika::agent {

struct StageKey {
  StageId stage;
  Epoch epoch;

  auto operator<=>(const StageKey&) const = default;
};

std::string text(const StageKey& key);  // "a/0 (epoch 7)"

// "CLUSTER/NODE/": what the marks of every stage of this node begin with.
std::string mark_prefix(const std::string& cluster, const std::string& node);
std::string mark_of(const std::string& cluster, const std::string& node, const StageKey& key);
Result<StageKey> key_of_mark(std::string_view mark, const std::string& cluster, const std::string& node);

std::string folder_of(const StageKey& key);  // "a-0-7"
Result<StageKey> key_of_folder(std::string_view folder);

// Files in /dev/shm of this stage begin so.
std::string shared_memory_prefix(const std::string& cluster, const std::string& node, const StageKey& key);
std::string cgroup_name(const std::string& cluster, const std::string& node, const StageKey& key);

}  // namespace troika::agent
