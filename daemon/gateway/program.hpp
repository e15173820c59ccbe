// `troikad gateway`: a process of its own that outlives the leader.
#pragma once

#include <string>

#include "config/cluster.hpp"

namespace troika::daemon::gateway {

constexpr int kCannotRun = 1;  // a listener, another gateway
constexpr int kBadInput = 2;   // configuration or a damaged file: another start ends the same way

// Where a gateway that cannot run says why, for the leader that started it.
inline std::string last_words_file(const std::string& state_dir) {
  return state_dir + "/gateway.last-words";
}

// Runs until SIGTERM or SIGINT; then requests in hand may finish for kDrain (a second signal ends at once).
// The exit status: 0 ended as told, else one of the above.
int run_gateway(const config::ClusterConfig& config);

}  // namespace troika::daemon::gateway
