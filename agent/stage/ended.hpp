// Run directories of stages that are over: a few are kept as evidence (their logs), below RUN_DIR/ended.
#pragma once

#include <string>

#include "agent/stage/identity.hpp"

namespace troika::agent {

inline constexpr std::size_t kKeptEnded = 8;

void keep_as_evidence(const std::string& run_dir, const StageKey& key);

}  // namespace troika::agent
