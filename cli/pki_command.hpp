// `troika pki init|issue|list`: the cluster's certificates.
#pragma once

#include "cli/command.hpp"

namespace troika::cli {

void add_pki(CLI::App& app, const Global& global, int& exit_status);

}  // namespace troika::cli
