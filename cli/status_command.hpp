// `troika status [--watch] [--json]`.
#pragma once

#include "cli/command.hpp"

namespace troika::cli {

void add_status(CLI::App& app, const Global& global, int& exit_status);

}  // namespace troika::cli
