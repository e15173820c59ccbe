// One file of the manifest: first what can be told without reading it all, then its bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/model/manifest.hpp"
#include "agent/model/place.hpp"
#include "agent/model/safetensors.hpp"
#include "vocabulary/finding.hpp"

namespace troika::model {

struct FileFacts {
  std::string name;
  std::string path;  // real; empty: not there
  std::uint64_t bytes = 0;
  std::optional<Finding> finding;  // the most specific cause
  std::vector<Tensor> tensors;     // of a shard with a good header
  bool whole = false;  // a shard whose header and size agree with each other, whatever the manifest says
};

// Order of causes: what the bytes are, then the header, then the size (codes of docs).
FileFacts look_at_file(const ModelRoot& root, const std::string& name, const ManifestFile& expected);

struct Reading {
  std::string sha256;
  bool cancelled = false;
  std::optional<Finding> finding;  // HASH_MISMATCH, ZERO_FILLED, CHANGED_WHILE_READ, UNREADABLE, ...
};
// Reads every byte. `advance` gets the bytes of each block and says whether to go on.
Reading read_file(const FileFacts& facts, const ManifestFile& expected,
                  const std::function<bool(std::size_t)>& advance);

}  // namespace troika::model
