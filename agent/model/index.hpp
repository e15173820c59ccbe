// model.safetensors.index.json against the shards' own headers. Mode 1: an engine that drops a missing
// shard's name from its list boots, answers 200 and talks nonsense.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/safetensors.hpp"
#include "vocabulary/finding.hpp"
#include "vocabulary/result.hpp"

namespace troika::model {

struct Index {
  std::map<std::string, std::string> shard_of;  // by tensor
  std::uint64_t total_bytes = 0;                // metadata.total_size; 0: not told
};
Result<Index> parse_index(std::string_view text, const std::string& subject);

// Collects the headers of all shards, then compares.
class TensorMap {
 public:
  void add(const std::string& shard, const std::vector<Tensor>& tensors);
  std::uint64_t tensors() const { return shard_of_.size() + duplicates_.size(); }

  // Two shards with the same tensor: DUPLICATE_TENSOR.
  std::vector<Finding> duplicates() const;
  // INDEX_HEADER_DISAGREE (one a shard and kind, with the first tensor and the count), MISSING_SHARD for
  // shards that only the index names, STALE_TOTAL_SIZE. `absent`: shards without a good header; they have
  // their own finding.
  std::vector<Finding> compare(const Index& index, const std::string& index_name,
                               const std::set<std::string>& absent) const;

 private:
  struct Duplicate {
    std::string tensor, first, second;
  };
  std::map<std::string, std::string> shard_of_;
  std::set<std::string> shards_;
  std::vector<Duplicate> duplicates_;
  std::uint64_t bytes_ = 0;
};

// The first tensor that the index expects in the shard; empty: none.
std::string first_tensor_of(const Index& index, const std::string& shard);

}  // namespace troika::model
