#include "policies/lifecycle.hpp"

#include <algorithm>

#include "policies/lifecycle_state.hpp"
#include "policies/line.hpp"

namespace troika::policies {

std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::Stopped:
      return "stopped";
    case Phase::Verifying:
      return "verifying";
    case Phase::Starting:
      return "starting";
    case Phase::Loading:
      return "loading";
    case Phase::Proving:
      return "proving";
    case Phase::Serving:
      return "serving";
    case Phase::Draining:
      return "draining";
    case Phase::Stopping:
      return "stopping";
    case Phase::Failed:
      return "failed";
  }
  broken_invariant("phase", __FILE__, __LINE__);
}

std::string_view name(Wish wish) {
  switch (wish) {
    case Wish::Start:
      return "start";
    case Wish::Stop:
      return "stop";
    case Wish::Restart:
      return "restart";
    case Wish::Drain:
      return "drain";
    case Wish::Failover:
      return "failover";
  }
  broken_invariant("wish", __FILE__, __LINE__);
}

void add_findings(std::vector<Finding>& to, const std::vector<Finding>& from) {
  for (const Finding& f : from) {
    if (std::find(to.begin(), to.end(), f) != to.end()) continue;
    if (to.size() < kMaxFindings) {
      to.push_back(f);
      continue;
    }
    // Full: an error must not be lost for information.
    const auto least = std::min_element(to.begin(), to.end(), [](const Finding& a, const Finding& b) {
      return verdict_of(a) < verdict_of(b);
    });
    if (least != to.end() && verdict_of(*least) < verdict_of(f)) *least = f;
  }
}

bool alive(StageFact fact) {
  switch (fact) {
    case StageFact::Starting:
    case StageFact::Loading:
    case StageFact::Ready:
      return true;
    case StageFact::Unknown:
    case StageFact::Absent:
    case StageFact::Exited:
    case StageFact::NotReleased:
      return false;
  }
  broken_invariant("stage fact", __FILE__, __LINE__);
}

ClusterState::ClusterState(ClusterPlan plan_of_cluster) : plan(std::move(plan_of_cluster)) {
  for (const ReplicaPlan& replica : plan.replicas) {
    TROIKA_INVARIANT(!replica.nodes.empty());
    ReplicaState state;
    state.plan = replica;
    state.ranks.resize(replica.nodes.size());
    state.reason = "never started";
    replicas.push_back(std::move(state));
    for (const std::string& node : replica.nodes)
      nodes.try_emplace(node);
  }
}

std::vector<Action> ClusterState::step(const Event& event, Instant at) {
  out.clear();
  if (!started && !std::holds_alternative<LeaderStarted>(event)) return {};
  if (started && at - now > kUnwatched) credit_unwatched(at - now);
  now = std::max(now, at);
  std::visit([this](const auto& e) { on(e); }, event);
  if (started) settle();
  return std::move(out);
}

void ClusterState::settle() {
  // Each replica's phases only go forward until something outside is waited for; the longest such run is a
  // failure whose release is proven already and that starts again: end, release, verify.
  constexpr int kMaxMoves = 16;
  notice_silence();
  for (ReplicaState& r : replicas)
    for (int moves = 0; advance(r); ++moves)
      TROIKA_INVARIANT(moves < kMaxMoves);
  sweep();
  for (ReplicaState& r : replicas)
    watch_blocked(r);
  update_route(false);
  finish_commands();
}

// One move of a replica; false: it waits for something.
bool ClusterState::advance(ReplicaState& r) {
  if (r.reconciling) return reconcile(r);
  switch (r.phase) {
    case Phase::Stopped:
      return try_start(r);
    case Phase::Verifying:
      return advance_verifying(r);
    case Phase::Starting:
    case Phase::Loading:
      return fail_on_causes(r) || advance_loading(r);
    case Phase::Proving:
      return fail_on_causes(r) || advance_proving(r);
    case Phase::Serving:
      return fail_on_causes(r);
    case Phase::Draining:
      return fail_on_causes(r) || advance_draining(r);
    case Phase::Stopping:
      return advance_stopping(r);
    case Phase::Failed:
      return false;
  }
  broken_invariant("phase", __FILE__, __LINE__);
}

void ClusterState::enter(ReplicaState& r, Phase phase, std::string reason) {
  r.phase = phase;
  r.phase_since = now;
  r.waited_from = now;
  r.reason = std::move(reason);
}

void ClusterState::persist(const ReplicaState& r) {
  StoredReplica stored;
  stored.name = r.plan.name;
  stored.desired_running = r.desired;
  stored.epoch = r.epoch;
  stored.proven = r.proven;
  stored.breaker_open = r.breaker_open;
  stored.ended = r.ended;
  stored.released = r.released;
  stored.active = index_of(r) == active;
  stored.failures = static_cast<std::uint32_t>(r.failures.size());
  stored.kv_capacity = r.kv_capacity;
  out.push_back(PersistReplica{std::move(stored)});
}

// Unique across leaders too, as an agent may answer a later leader what an earlier one asked; below 2^53 for
// JSON.
std::uint64_t ClusterState::new_request() {
  constexpr std::uint64_t kPerTerm = 1u << 20;
  return (term.count % (1ull << 32)) * kPerTerm + ++requests % kPerTerm;
}

std::string ClusterState::subject(const ReplicaState& r) const {
  return line("replica ", r.plan.name);
}

void ClusterState::open_incident(ReplicaState& r, std::string title, std::vector<Finding> findings) {
  r.incident_open = true;
  out.push_back(OpenIncident{subject(r), std::move(title), std::move(findings)});
}

void ClusterState::note_incident(const ReplicaState& r, std::string action, std::vector<Finding> findings,
                                 std::string title) {
  if (r.incident_open)
    out.push_back(NoteIncident{subject(r), std::move(action), std::move(findings), std::move(title)});
}

void ClusterState::close_incident(ReplicaState& r, std::string action) {
  if (!r.incident_open) return;
  r.incident_open = false;
  out.push_back(CloseIncident{subject(r), std::move(action)});
}

std::size_t ClusterState::index_of(const ReplicaState& r) const {
  return static_cast<std::size_t>(&r - replicas.data());
}

NodeState& ClusterState::node_of(const ReplicaState& r, std::size_t rank) {
  return nodes.at(r.plan.nodes[rank]);
}
const NodeState& ClusterState::node_of(const ReplicaState& r, std::size_t rank) const {
  return nodes.at(r.plan.nodes[rank]);
}

bool ClusterState::lost(const NodeState& node) const {
  return !node.connected && now - node.away_since >= plan.patience.node_lost;
}

void ClusterState::on(const Tick&) {}

Cluster::Cluster(ClusterPlan plan) : state_(std::make_unique<ClusterState>(std::move(plan))) {}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

std::vector<Action> Cluster::step(const Event& event, Instant now) {
  return state_->step(event, now);
}

Term Cluster::term() const {
  return state_->term;
}

std::vector<ReplicaView> Cluster::replicas() const {
  std::vector<ReplicaView> views;
  for (const ReplicaState& r : state_->replicas) {
    ReplicaView view;
    view.name = r.plan.name;
    view.desired_running = r.desired;
    view.phase = r.phase;
    view.epoch = r.epoch;
    view.proven = r.proven;
    view.breaker_open = r.breaker_open;
    view.routed =
        !state_->route.empty() && state_->route[0].replica == r.plan.name && !state_->route[0].draining;
    view.kv_capacity = r.kv_capacity;
    view.phase_since = r.phase_since;
    view.reason = r.reason;
    view.findings = r.findings;
    for (const RankState& rank : r.ranks)
      view.stages.push_back(rank.fact);
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace troika::policies
