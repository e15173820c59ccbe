// model.safetensors.index.json against the shards' own headers. Mode 1: an engine that drops a missing
// shard's name from its list boots, answers 200 and talks nonsense.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/safetensors/header.hpp"
#include "engine/safetensors/index.hpp"
#include "vocabulary/finding.hpp"

namespace troika::model {

// Collects the names of all shards' tensors, then compares. Where index and headers agree, which is nearly
// always and nearly everywhere, each tensor costs one look into its own shard's names.
class TensorMap {
 public:
  void add(const std::string& shard, safetensors::Header header);
  std::uint64_t tensors() const { return tensors_; }

  struct Comparison {
    std::vector<Finding> duplicates;     // DUPLICATE_TENSOR: in two shards
    std::vector<Finding> disagreements;  // INDEX_HEADER_DISAGREE (one a shard and kind, with the first tensor
                                         // and the count), MISSING_SHARD for shards that only the index
                                         // names, STALE_TOTAL_SIZE
  };
  // `index`: null where the model has none. `absent`: shards without a good header; they have their own
  // finding.
  Comparison compare(const safetensors::Index* index, const std::string& index_name,
                     const std::set<std::string, std::less<>>& absent) const;

 private:
  struct Shard {
    std::string name;
    safetensors::NameTable tensors;
  };
  class Comparing;

  std::vector<Shard> shards_;
  std::uint64_t tensors_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace troika::model
