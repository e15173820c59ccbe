// A leader's start: what the store says, confirmed or refuted by what the nodes say. Stages and streams do
// not notice.
#include <algorithm>

#include "policies/lifecycle_state.hpp"
#include "policies/line.hpp"

namespace troika::policies {

void ClusterState::on(const LeaderStarted& event) {
  if (started) return;
  started = true;
  reconcile_until = now + plan.patience.reconcile;
  for (auto& [name, node] : nodes) {
    node.away_since = now;
    node.heard_at = now;
  }
  term = next(event.stored_term);
  out.push_back(PersistTerm{term});
  out.push_back(AnnounceTerm{term, {}});
  for (ReplicaState& r : replicas)
    enter(r, Phase::Stopped, r.reason);
  for (const StoredReplica& stored : event.replicas)
    restore(stored);
}

void ClusterState::restore(const StoredReplica& stored) {
  ReplicaState* found = replica_named(stored.name);
  if (found == nullptr) return;  // no longer in the plan; what runs of it is swept
  ReplicaState& r = *found;
  r.desired = stored.desired_running;
  r.epoch = stored.epoch;
  r.heard = stored.epoch;
  r.breaker_open = stored.breaker_open;
  r.ended = stored.ended;
  r.released = stored.released || stored.epoch.count == 0;
  r.proven = stored.proven && !r.ended && !r.released;
  r.kv_capacity = r.proven ? stored.kv_capacity : Tokens{};
  if (stored.active) active = index_of(r);
  // Their times mean nothing to this leader, so they count as fresh.
  const std::size_t count = std::min<std::size_t>(stored.failures, plan.restart.attempts + 1);
  r.failures.assign(count, FailureRecord{now, Epoch{}, {}});
  r.incident_open = true;  // the leader before may have left one open; noting or closing none does nothing

  if (r.released) {
    if (r.breaker_open && r.desired)
      enter(r, Phase::Failed, "its breaker was open before this leader started");
    else
      enter(r, Phase::Stopped, r.desired ? "waits for its nodes" : "stopped");
  } else if (r.ended || (!r.desired && !r.proven)) {
    r.ended = true;
    enter(r, Phase::Stopping, "its end was decided before this leader started");
  } else {
    r.reconciling = true;
    const Phase phase = !r.desired ? Phase::Draining : r.proven ? Phase::Proving : Phase::Loading;
    enter(r, phase, "this leader started and waits for word from its nodes");
  }
}

bool ClusterState::presumed(const ReplicaState& r) const {
  return r.reconciling && r.proven && r.desired;
}

// Decides as soon as the facts do: at once where all nodes have spoken or one rank is known to be gone, at
// the end of the window where a node did not come back.
bool ClusterState::reconcile(ReplicaState& r) {
  bool waiting = false;
  bool any_alive = false;
  bool all_ready = true;
  bool ended_by_itself = false;
  for (std::size_t k = 0; k < r.ranks.size(); ++k) {
    const StageFact fact = r.ranks[k].fact;
    waiting = waiting || fact == StageFact::Unknown;
    any_alive = any_alive || alive(fact);
    all_ready = all_ready && fact == StageFact::Ready;
    ended_by_itself = ended_by_itself || fact == StageFact::Exited || fact == StageFact::NotReleased ||
                      !r.ranks[k].findings.empty();
  }
  std::vector<Finding> causes = causes_of_failure(r);
  std::erase_if(causes, [](const Finding& f) { return f.code == Code::NODE_LOST; });
  if (!causes.empty() && (r.proven || ended_by_itself || any_alive)) {
    fail(r, std::move(causes));
    return true;
  }
  if (waiting && now < reconcile_until) return false;
  if (waiting) {
    for (std::size_t k = 0; k < r.ranks.size(); ++k) {
      if (r.ranks[k].fact != StageFact::Unknown) continue;
      const std::string& node = r.plan.nodes[k];
      causes.push_back(
          finding(Code::NODE_LOST, node, node,
                  line(node, " did not come back to the leader that started, with ", r.plan.name, "/", k),
                  "Look at the node's power, console and cables, and at its troika-agent."));
    }
    fail(r, std::move(causes));
    return true;
  }
  if (!any_alive) {
    // Its epoch was written down and never started: the leader ended in between. Nothing failed.
    end_epoch(r, line("epoch ", r.epoch, " was never started"));
    return true;
  }
  r.reconciling = false;
  const std::string found = line("found running by the leader that started (term ", term, ")");
  if (!r.desired)
    enter(r, Phase::Draining, found);
  else if (r.proven)
    serve(r, line("epoch ", r.epoch, " was proven and ", found));
  else
    enter(r, all_ready ? Phase::Proving : Phase::Loading, found);
  return true;
}

}  // namespace troika::policies
