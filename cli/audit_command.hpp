// `troika verify` without --model: every node proves its model, asked through the leader.
#pragma once

#include "cli/command.hpp"

namespace troika::cli {

// Returns the exit status.
int audit(const Global& global, bool deep, bool json);

}  // namespace troika::cli
