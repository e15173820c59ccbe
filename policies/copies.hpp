// Which nodes have a good copy of a file that is bad on another one. Pure.
#pragma once

#include <string>
#include <vector>

#include "vocabulary/finding.hpp"

namespace troika::policies {

// What a node's proof says of the files of a manifest.
struct NodeCopies {
  std::string node;
  std::string manifest_digest;        // of what it was proven against
  std::vector<std::string> unproven;  // files whose bytes are not proven
  bool others_proven = false;         // false: of the files that are not named nothing can be said
};

// To each finding about an unproven file, the other nodes whose bytes of it are proven: as evidence
// "good_copies" ("spark-2, spark-3") and in the remedy, which says too if the file is bad on all of them.
void tell_good_copies(std::vector<Finding>& findings, const std::vector<NodeCopies>& nodes);

}  // namespace troika::policies
