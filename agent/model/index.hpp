// model.safetensors.index.json against the shards' own headers. Mode 1: an engine that drops a missing
// shard's name from its list boots, answers 200 and talks nonsense.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/safetensors/header.hpp"
#include "engine/safetensors/index.hpp"
#include "vocabulary/finding.hpp"

namespace troika::model {

// Collects the headers of all shards, then compares.
class TensorMap {
 public:
  void add(const std::string& shard, const safetensors::Header& header);
  std::uint64_t tensors() const { return tensors_.size() + duplicates_; }

  // Two shards with the same tensor: DUPLICATE_TENSOR.
  const std::vector<Finding>& duplicates() const { return duplicate_findings_; }
  // INDEX_HEADER_DISAGREE (one a shard and kind, with the first tensor and the count), MISSING_SHARD for
  // shards that only the index names, STALE_TOTAL_SIZE. `absent`: shards without a good header; they have
  // their own finding.
  std::vector<Finding> compare(const safetensors::Index& index, const std::string& index_name,
                               const std::set<std::string, std::less<>>& absent) const;

 private:
  safetensors::NameTable tensors_;
  safetensors::NameTable shards_;
  std::vector<std::uint32_t> shard_of_;  // by the tensor's number
  std::uint64_t duplicates_ = 0;
  std::vector<Finding> duplicate_findings_;
  std::uint64_t bytes_ = 0;
};

}  // namespace troika::model
