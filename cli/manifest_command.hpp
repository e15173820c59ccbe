// `troika manifest create|import`: what a model must be, as a file.
#pragma once

#include "cli/command.hpp"

namespace troika::cli {

void add_manifest(CLI::App& app, const Global& global, int& exit_status);

}  // namespace troika::cli
