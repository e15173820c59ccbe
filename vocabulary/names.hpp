// Names of the things of a cluster.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika {

// The share of a model's layers that one rank of a replica runs; written "a/0".
struct StageId {
  std::string replica;
  Rank rank;

  auto operator<=>(const StageId&) const = default;
};

std::string text(const StageId& stage);  // "a/0"
Result<StageId> parse_stage_id(std::string_view text);

// Clusters, nodes and replicas are named by 1 to 63 of a-z, 0-9 and '-', a letter or digit first and last
// (they stand in certificates, file names and log lines).
Status check_name(std::string_view kind, std::string_view name);

// Layers [begin, end) of a model.
struct LayerRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  std::uint32_t size() const { return end - begin; }
  auto operator<=>(const LayerRange&) const = default;
};

}  // namespace troika
