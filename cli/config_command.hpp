// `troika config check FILE [--kind cluster|agent] [--json]`.
#pragma once

#include "cli/command.hpp"

namespace troika::cli {

void add_config(CLI::App& app, const Global& global, int& exit_status);

}  // namespace troika::cli
