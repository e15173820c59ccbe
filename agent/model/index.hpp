// model.safetensors.index.json against the shards' own headers. Mode 1: an engine that drops a missing
// shard's name from its list boots, answers 200 and talks nonsense.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/safetensors/header.hpp"
#include "engine/safetensors/index.hpp"
#include "vocabulary/finding.hpp"

namespace troika::model {

// An index of a folder, which names shards of that folder alone.
struct NamedIndex {
  std::string name;  // in the manifest
  safetensors::Index index;
};

// Collects the names of the tensors of one folder's shards, then compares. Where index and headers agree,
// which is nearly always and nearly everywhere, each tensor costs one look into its own shard's names.
class TensorMap {
 public:
  // `folder`: "" or ending with '/'; it stands before each shard in what is told.
  explicit TensorMap(std::string folder = {}) : folder_(std::move(folder)) {}

  // `shard`: its name in the folder.
  void add(const std::string& shard, safetensors::Header header);
  std::uint64_t tensors() const { return tensors_; }

  // DUPLICATE_TENSOR: in two shards, but not where one index each means it so. INDEX_HEADER_DISAGREE: one a
  // shard and kind, with the first tensor and the count. MISSING_SHARD: named by an index alone.
  // STALE_TOTAL_SIZE. `absent`: shards of the folder without a good header; they have their own finding.
  std::vector<Finding> compare(const std::vector<NamedIndex>& indexes,
                               const std::set<std::string, std::less<>>& absent) const;

 private:
  struct Shard {
    std::string name;
    safetensors::NameTable tensors;
  };
  class Comparing;

  std::string folder_;
  std::vector<Shard> shards_;
  std::uint64_t tensors_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace troika::model
