// What nodes say, and the sweeping of what nobody wants.
#include <algorithm>

#include "policies/cause.hpp"
#include "policies/lifecycle_state.hpp"
#include "policies/line.hpp"

namespace troika::policies {

// The leader itself did not run (suspended, stopped by a debugger): what was not listened to says nothing
// about the nodes, so no deadline may fall due because of it.
void ClusterState::credit_unwatched(Duration gap) {
  for (auto& [name, node] : nodes) {
    node.heard_at += gap;
    node.away_since += gap;
  }
  for (ReplicaState& r : replicas) {
    r.waited_from += gap;
    r.blocked_since += gap;
  }
  reconcile_until += gap;
}

NodeState* ClusterState::hear(const std::string& name) {
  const auto found = nodes.find(name);
  if (found == nodes.end()) return nullptr;
  NodeState& node = found->second;
  if (node.silent) {
    node.silent = false;
    node.connected = true;
  }
  if (!node.connected) return nullptr;
  node.heard_at = now;
  return &node;
}

void ClusterState::forget_session(const std::string& name, NodeState& node) {
  node.connected = false;
  for (ReplicaState& r : replicas) {
    for (std::size_t k = 0; k < r.ranks.size(); ++k) {
      if (r.plan.nodes[k] != name) continue;
      RankState& rank = r.ranks[k];
      rank.fact = StageFact::Unknown;
      rank.verify_request = 0;
      rank.verified = false;
      rank.stop_sent = false;
      if (k == 0) r.probe_request = 0;
    }
  }
}

void ClusterState::notice_silence() {
  for (auto& [name, node] : nodes) {
    if (!node.connected || now - node.heard_at < plan.patience.node_lost) continue;
    forget_session(name, node);
    node.silent = true;
    node.away_since = node.heard_at;
  }
}

void ClusterState::raise_term(Term heard) {
  term = next(heard);
  out.push_back(PersistTerm{term});
  for (auto& [name, node] : nodes)
    if (node.connected) node.announced = term;
  out.push_back(AnnounceTerm{term, {}});
  if (route_sent) send_route();  // the gateway refused what came under the term before
}

void ClusterState::on(const TermHeard& event) {
  if (event.term > term) raise_term(event.term);
}

// An agent that obeyed a higher term, or ours before we announced it to anybody there, obeyed another
// leadership.
void ClusterState::hear_term(const AgentConnected& event, NodeState& node) {
  const bool ours = event.highest_term < term || (event.highest_term == term && node.announced == term);
  if (ours)
    out.push_back(AnnounceTerm{term, event.node});
  else
    raise_term(event.highest_term);
  node.announced = term;
}

ReplicaState* ClusterState::replica_named(const std::string& name) {
  for (ReplicaState& r : replicas)
    if (r.plan.name == name) return &r;
  return nullptr;
}

RankState* ClusterState::rank_on(const std::string& node, const StageId& stage) {
  ReplicaState* r = replica_named(stage.replica);
  if (r == nullptr || stage.rank.count >= r->ranks.size()) return nullptr;
  return r->plan.nodes[stage.rank.count] == node ? &r->ranks[stage.rank.count] : nullptr;
}

void ClusterState::on(const AgentConnected& event) {
  if (!nodes.contains(event.node) && nodes.size() >= kMaxNodes) return;
  NodeState& node = nodes[event.node];
  forget_session(event.node, node);  // an earlier one, if any, is void
  node.connected = true;
  node.silent = false;
  node.heard_at = now;
  node.boot_id = event.boot_id;
  node.strays.clear();
  hear_term(event, node);
  for (const auto& [replica, epoch] : event.highest_epochs)
    if (ReplicaState* r = replica_named(replica)) r->heard = std::max(r->heard, epoch);

  // It lists all that exists there, so silence about a rank tells that it is gone.
  for (ReplicaState& r : replicas) {
    for (std::size_t k = 0; k < r.ranks.size(); ++k) {
      if (r.plan.nodes[k] != event.node) continue;
      RankState& rank = r.ranks[k];
      rank.fact = StageFact::Absent;
      if (r.released) continue;
      if (rank.boot_id.empty()) rank.boot_id = event.boot_id;
      if (rank.boot_id != event.boot_id) rank.rebooted = true;
    }
  }
  for (const ReportedStage& report : event.stages) {
    ReplicaState* r = replica_named(report.stage.replica);
    if (r != nullptr) r->heard = std::max(r->heard, report.epoch);
    RankState* rank = rank_on(event.node, report.stage);
    if (rank != nullptr && !r->released && report.epoch == r->epoch) {
      rank->fact = StageFact::Unknown;
      take_report(*r, *rank, report);
    } else if (report.fact != StageFact::Absent) {
      add_stray(node, report);
    }
  }
}

void ClusterState::on(const AgentDisconnected& event) {
  const auto found = nodes.find(event.node);
  if (found == nodes.end() || (!found->second.connected && !found->second.silent)) return;
  if (found->second.connected) found->second.away_since = now;
  found->second.silent = false;
  forget_session(event.node, found->second);
}

void ClusterState::on(const AgentHeard& event) {
  hear(event.node);
}

void ClusterState::on(const StageReported& event) {
  NodeState* node = hear(event.node);
  if (node == nullptr) return;
  const ReportedStage& report = event.report;
  ReplicaState* r = replica_named(report.stage.replica);
  if (r != nullptr) r->heard = std::max(r->heard, report.epoch);
  if (report.fact == StageFact::Absent)
    std::erase_if(node->strays,
                  [&](const Stray& s) { return s.stage == report.stage && s.epoch <= report.epoch; });
  RankState* rank = rank_on(event.node, report.stage);
  if (rank != nullptr && r->released && report.epoch == r->epoch) take_findings(*r, *rank, report);
  if (rank != nullptr && !r->released && report.epoch == r->epoch) {
    take_report(*r, *rank, report);
  } else if (report.fact != StageFact::Absent) {
    add_stray(*node, report);
  } else if (rank != nullptr && report.epoch >= r->epoch && (r->released || r->phase == Phase::Stopping)) {
    rank->fact = StageFact::Absent;  // the answer to a stop of every epoch there is
  }
}

// Why a stage ended, kept once. Once its replica's end is decided it goes into the incident by itself; an
// agent that was away may even tell it after all is released (it hands over then what it saw).
void ClusterState::take_findings(ReplicaState& r, RankState& rank, const ReportedStage& report) {
  if (alive(report.fact) || (report.exit_requested && report.fact != StageFact::NotReleased)) return;
  const auto known = static_cast<std::ptrdiff_t>(rank.findings.size());
  add_findings(rank.findings, report.findings);
  std::vector<Finding> news(rank.findings.begin() + known, rank.findings.end());
  if (news.empty() || !r.ended) return;
  nearest_first(news);
  // One that only lost a neighbour after the end was decided fell with it: that is no fault of its own.
  for (Finding& one : news)
    if (nearness(one) == 1) one.severity = Severity::Info;
  // A later failure tells of this one too, when the breaker opens.
  if (!r.failures.empty() && r.failures.back().epoch == report.epoch)
    add_findings(r.failures.back().findings, news);
  note_incident(r, line(text(report.stage), " of epoch ", report.epoch, " reported its end"), news,
                nearer_title(r, news.front()));
}

// The failure has a title from what was heard first. A nearer cause gives it another one.
std::string ClusterState::nearer_title(ReplicaState& r, const Finding& cause) {
  if (r.failed.empty() || nearness(cause) <= r.failed_nearness) return {};
  r.failed_nearness = nearness(cause);
  std::string title = line(r.failed, cause.message);
  if (r.reason.rfind(r.failed, 0) == 0) r.reason = title;
  return title;
}

// A report on the replica's own epoch. Reports may come late or twice (an agent hands over what it saw while
// no leader listened), so a living stage never goes back to an earlier state, and an ended one does not come
// to life again.
void ClusterState::take_report(ReplicaState& r, RankState& rank, const ReportedStage& report) {
  if (report.progress > rank.progress || report.fact != rank.fact)
    r.waited_from = std::max(r.waited_from, now);
  rank.progress = std::max(rank.progress, report.progress);
  take_findings(r, rank, report);
  switch (report.fact) {
    case StageFact::Unknown:
      break;
    case StageFact::Starting:
    case StageFact::Loading:
    case StageFact::Ready:
      if (!alive(rank.fact) && rank.fact != StageFact::Unknown && rank.fact != StageFact::Absent) break;
      rank.fact = alive(rank.fact) ? std::max(rank.fact, report.fact) : report.fact;
      break;
    case StageFact::Exited:
      if (rank.fact != StageFact::NotReleased) rank.fact = StageFact::Exited;
      break;
    case StageFact::NotReleased:
    case StageFact::Absent:
      rank.fact = report.fact;
      break;
  }
}

void ClusterState::add_stray(NodeState& node, const ReportedStage& report) {
  if (report.fact == StageFact::Unknown) return;
  const auto same = std::find_if(node.strays.begin(), node.strays.end(), [&](const Stray& s) {
    return s.stage == report.stage && s.epoch == report.epoch;
  });
  if (same != node.strays.end()) {
    same->fact = report.fact;
    same->findings = report.findings;
    return;
  }
  if (node.strays.size() >= kMaxStrays) return;
  Stray stray;
  stray.stage = report.stage;
  stray.epoch = report.epoch;
  stray.fact = report.fact;
  stray.findings = report.findings;
  node.strays.push_back(std::move(stray));
}

bool ClusterState::has_stray_of(const NodeState& node, const std::string& replica) const {
  return std::any_of(node.strays.begin(), node.strays.end(),
                     [&](const Stray& s) { return s.stage.replica == replica; });
}

// Stops what nobody wants, and asks about what is not known where nothing should be.
void ClusterState::sweep() {
  const Patience& patience = plan.patience;
  for (auto& [name, node] : nodes) {
    if (!node.connected) continue;
    for (Stray& s : node.strays) {
      if (s.stop_sent && now - s.stop_sent_at < patience.resend) continue;
      s.stop_sent = true;
      s.stop_sent_at = now;
      out.push_back(SendStop{name, s.stage, s.epoch, patience.stop_grace,
                             line("nobody wants epoch ", s.epoch, " of ", s.stage.replica)});
    }
  }
  for (ReplicaState& r : replicas) {
    if (!r.released) continue;
    for (std::size_t k = 0; k < r.ranks.size(); ++k) {
      const RankState& rank = r.ranks[k];
      if (!node_of(r, k).connected || rank.fact != StageFact::Unknown) continue;
      if (!rank.stop_sent || now - rank.stop_sent_at >= patience.resend) send_stop(r, k);
    }
  }
}

}  // namespace troika::policies
