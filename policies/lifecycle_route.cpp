// What the gateway serves: proven and running replicas, the active one first.
#include <algorithm>

#include "policies/lifecycle_state.hpp"
#include "policies/line.hpp"

namespace troika::policies {

// Presumed: the gateway has it from the leader before, and it was proven; if it is gone, its agent refuses
// the relay.
bool ClusterState::routable(const ReplicaState& r) const {
  if (presumed(r)) return node_of(r, 0).connected;
  return r.phase == Phase::Serving && !r.reconciling && r.desired;
}

// The active one stays active for as long as it serves; a replica that comes back follows as the one to take
// over.
void ClusterState::choose_active() {
  std::size_t chosen = active;
  if (failover_to < replicas.size() && replicas[failover_to].phase == Phase::Serving) {
    chosen = failover_to;
    failover_to = SIZE_MAX;
  } else if (!routable(replicas[active])) {
    for (std::size_t i = replicas.size(); i-- > 0;)
      if (routable(replicas[i])) chosen = i;
  }
  if (chosen == active) return;
  const std::size_t before = active;
  active = chosen;
  persist(replicas[before]);
  persist(replicas[chosen]);
}

// at_once: something that the gateway may know must not be served any more, so it cannot wait for the others'
// word.
void ClusterState::update_route(bool at_once) {
  if (replicas.empty()) return;
  const bool undecided =
      std::any_of(replicas.begin(), replicas.end(), [&](const ReplicaState& r) { return presumed(r); });
  if (!route_sent && undecided && !at_once) return;
  choose_active();
  std::vector<RouteEntry> entries;
  const auto add = [&](const ReplicaState& r, bool draining) {
    entries.push_back(RouteEntry{r.plan.name, r.epoch, draining, r.kv_capacity});
  };
  if (routable(replicas[active])) add(replicas[active], false);
  for (std::size_t i = 0; i < replicas.size(); ++i)
    if (i != active && routable(replicas[i])) add(replicas[i], false);
  for (const ReplicaState& r : replicas)
    if (r.phase == Phase::Draining && node_of(r, 0).connected) add(r, true);
  // Where nothing serves the gateway tells its clients why, and that changes with each replica's state.
  const bool nothing_serves =
      std::all_of(entries.begin(), entries.end(), [](const auto& one) { return one.draining; });
  if (route_sent && entries == route && !(nothing_serves && route_reason != reason_of_route())) return;
  route_sent = true;
  route = std::move(entries);
  send_route();
}

std::string ClusterState::reason_of_route() const {
  std::string reason;
  for (const ReplicaState& r : replicas)
    reason += line(reason.empty() ? "" : "; ", r.plan.name, " is ", name(r.phase), ": ", r.reason);
  return reason;
}

void ClusterState::send_route() {
  route_reason = reason_of_route();
  out.push_back(SetRoute{route, route_reason});
}

}  // namespace troika::policies
