// `troikad`: the leader's process.
#pragma once

#include <string>

#include "config/cluster.hpp"

namespace troika::daemon {

// Runs until SIGTERM or SIGINT. Stages and the gateway go on without it: `troika stop` is what ends stages.
// Exit status: 0 ended as told; 1 it could not run or go on (another leader, a listener, a write that
// failed); 2 configuration or a damaged store.
int run_leader(const config::ClusterConfig& config, const std::string& config_path);

}  // namespace troika::daemon
