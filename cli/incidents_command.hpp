// `troika incidents [--since T] [--open] [--json]`, `troika incidents show ID`.
#pragma once

#include "cli/command.hpp"

namespace troika::cli {

void add_incidents(CLI::App& app, const Global& global, int& exit_status);

}  // namespace troika::cli
