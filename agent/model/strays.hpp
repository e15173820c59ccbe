// Files beside the right ones. Mode 5: some loaders take whatever matches a pattern.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/model/manifest.hpp"
#include "agent/model/place.hpp"
#include "vocabulary/finding.hpp"

namespace troika::model {

// Would a loader or tokenizer pick up a file of this name without being told to?
bool loader_takes(std::string_view name);

struct Strays {
  std::vector<std::string> shards;  // *.safetensors that the manifest does not name
  std::vector<Finding> findings;    // EXTRA_FILE for each such file, LEFTOVER_INCOMPLETE; UNREADABLE or
                                    // CANNOT_TELL where a directory cannot be listed
};
// Files that the manifest allows by name are no strays. Of the directory's own level; folders that the
// manifest does not name are not what loaders look into.
Strays find_strays(const ModelRoot& root, const Manifest& manifest);

}  // namespace troika::model
