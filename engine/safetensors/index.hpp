// model.safetensors.index.json: in which shard each tensor of a model lies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/safetensors/names.hpp"
#include "vocabulary/result.hpp"

namespace troika::safetensors {

struct Index {
  NameTable tensors;
  NameTable shards;                     // file names, of the index's own directory
  std::vector<std::uint32_t> shard_of;  // by the tensor's number: the shard's
  std::uint64_t total_bytes = 0;        // metadata.total_size; 0: not told. Never the truth about anything

  // Empty: the index does not name the tensor.
  std::string_view shard(std::string_view tensor) const;
  // The first in the index's order; empty: none.
  std::string_view first_tensor_of(std::string_view shard) const;
};

// Refused: not strict JSON, a key twice, a shard's name that is no plain name of a *.safetensors. `subject`
// names the file in errors.
Result<Index> parse_index(std::string_view text, const std::string& subject);

}  // namespace troika::safetensors
