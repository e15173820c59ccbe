// `troika demo`: a whole cluster of real processes on this machine, what is done to it, and the record of it.
#pragma once

#include "cli/command.hpp"

namespace troika::cli {

void add_demo(CLI::App& app, const Global& global, int& exit_status);

}  // namespace troika::cli
