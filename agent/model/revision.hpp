// Another revision, or another model, that looks right. Mode 6: the number of shards can be the same, and the
// sizes within a few per cent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/model/file_check.hpp"
#include "agent/model/strays.hpp"

namespace troika::model {

// REVISION_MISMATCH where most shards are sound and of other sizes, or where most of the manifest's names are
// missing and others stand in their place. It takes the place of the single files' findings.
std::optional<Finding> other_revision(const Manifest& manifest, const std::vector<FileFacts>& facts,
                                      const Strays& strays);

}  // namespace troika::model
