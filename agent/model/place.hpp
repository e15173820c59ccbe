// Where a file of the manifest really lies. Mode 8: a link that resolves on the host need not resolve for the
// engine.
#pragma once

#include <string>
#include <variant>

#include "vocabulary/finding.hpp"
#include "vocabulary/result.hpp"

namespace troika::model {

// The model directory, links resolved, and what its links may lead to: itself, or, in the cache of
// huggingface_hub (models--*/snapshots/COMMIT), the blobs of the same repository.
struct ModelRoot {
  std::string directory;
  std::string blobs;  // empty: not such a cache
};
Result<ModelRoot> find_root(const std::string& directory);

// The real path, or the finding: MISSING_SHARD, MISSING_FILE, NOT_VISIBLE_IN_NAMESPACE, LINK_ESCAPES_TREE,
// SYMLINK_LOOP, UNREADABLE. The finding's node is empty.
std::variant<std::string, Finding> place_of(const ModelRoot& root, const std::string& name);

}  // namespace troika::model
