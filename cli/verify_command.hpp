// `troika verify`: the proof of a model directory on this machine.
#pragma once

#include "cli/command.hpp"

namespace troika::cli {

void add_verify(CLI::App& app, const Global& global, int& exit_status);

}  // namespace troika::cli
