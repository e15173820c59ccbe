// `troika start|stop|restart|drain [REPLICA]`, `troika failover [--to R]`: change what shall be.
#pragma once

#include "cli/command.hpp"

namespace troika::cli {

void add_intentions(CLI::App& app, const Global& global, int& exit_status);

}  // namespace troika::cli
