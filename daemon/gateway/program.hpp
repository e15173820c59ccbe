// `troikad gateway`: a process of its own that outlives the leader.
#pragma once

#include "config/cluster.hpp"

namespace troika::daemon::gateway {

// Runs until SIGTERM or SIGINT; then requests in hand may finish for kDrain (a second signal ends at once).
// Exit status: 0 ended as told, 1 it could not run (a listener, another gateway), 2 configuration or a
// damaged file.
int run_gateway(const config::ClusterConfig& config);

}  // namespace troika::daemon::gateway
