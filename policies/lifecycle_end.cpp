// The end of an epoch: failing, draining, stopping, the proof of release, the breaker. Modes 33, 47, 49,
// 60-62, 65.
#include <algorithm>

#include "policies/cause.hpp"
#include "policies/lifecycle_state.hpp"
#include "policies/line.hpp"
#include "vocabulary/time.hpp"

namespace troika::policies {

// What tells that a running epoch is over: any rank ended, or its node is lost, came back without it, or was
// rebooted.
std::vector<Finding> ClusterState::causes_of_failure(const ReplicaState& r) const {
  std::vector<Finding> causes;
  for (std::size_t k = 0; k < r.ranks.size(); ++k) {
    const RankState& rank = r.ranks[k];
    const std::string& node = r.plan.nodes[k];
    const std::string stage = text(StageId{r.plan.name, Rank{static_cast<std::uint32_t>(k)}});
    const std::string read_log =
        line("Read the log of ", stage, " on its node, in the run_dir of its agent.");
    if (lost(node_of(r, k))) {
      causes.push_back(finding(Code::NODE_LOST, node, node,
                               line("nothing was heard of ", node, ", which runs ", stage, ", for ",
                                    duration_text(plan.patience.node_lost)),
                               "Look at the node's power, console and cables."));
      continue;
    }
    if (rank.rebooted) {
      causes.push_back(finding(Code::NODE_REBOOTED, node, node,
                               line(node, " was rebooted while it ran ", stage),
                               "Read the journal of its last boot (journalctl -b -1)."));
      continue;
    }
    const bool told = verdict_of(rank.findings) == Verdict::Error;
    switch (rank.fact) {
      case StageFact::Unknown:
      case StageFact::Starting:
      case StageFact::Loading:
      case StageFact::Ready:
        continue;
      case StageFact::Exited:
        if (!told) causes.push_back(finding(Code::STAGE_DIED, node, stage, line(stage, " ended"), read_log));
        break;
      case StageFact::Absent:
        if (!told)
          causes.push_back(
              finding(Code::STAGE_DIED, node, stage, line(node, " has no ", stage, " any more"), read_log));
        break;
      case StageFact::NotReleased:
        if (!told)
          causes.push_back(
              finding(Code::STAGE_DIED, node, stage, line(stage, " ended and left something"), read_log));
        break;
    }
    add_findings(causes, rank.findings);
  }
  return causes;
}

bool ClusterState::fail_on_causes(ReplicaState& r) {
  std::vector<Finding> causes = causes_of_failure(r);
  if (causes.empty()) return false;
  fail(r, std::move(causes));
  return true;
}

void ClusterState::on(const StartRefused& event) {
  if (hear(event.node) == nullptr) return;
  ReplicaState* r = replica_named(event.stage.replica);
  if (rank_on(event.node, event.stage) == nullptr || event.epoch != r->epoch || r->reconciling) return;
  if (r->phase != Phase::Starting && r->phase != Phase::Loading) return;
  fail(*r, {event.finding});
}

// The gate is closed first, then every rank is stopped; one rank is never restarted alone (mode 60).
void ClusterState::fail(ReplicaState& r, std::vector<Finding> causes) {
  nearest_first(causes);
  const bool counts = r.desired;  // one that is being drained is not started again anyway
  r.failed = line("replica ", r.plan.name, " (epoch ", r.epoch, ") failed while ", name(r.phase), ": ");
  r.failed_nearness = causes.empty() ? 0 : nearness(causes.front());
  std::vector<Finding> findings{
      finding(Code::REPLICA_FAILED, {}, r.plan.name,
              line(r.failed, causes.empty() ? std::string("no cause is known") : causes.front().message), {},
              {{"epoch", static_cast<std::int64_t>(r.epoch.count)}, {"phase", std::string(name(r.phase))}})};
  add_findings(findings, causes);
  if (counts) {
    std::erase_if(r.failures, [&](const FailureRecord& f) { return now - f.at > plan.restart.window; });
    std::vector<Finding> evidence;
    for (const FailureRecord& f : r.failures)
      add_findings(evidence, f.findings);
    r.failures.push_back({now, r.epoch, findings});
    if (r.failures.size() > plan.restart.attempts) {
      r.breaker_open = true;
      findings.insert(findings.begin() + 1,
                      finding(Code::BREAKER_OPEN, {}, r.plan.name,
                              line("failure ", r.failures.size(), " of replica ", r.plan.name, " within ",
                                   duration_text(plan.restart.window), " (", plan.restart.attempts,
                                   " automatic restarts allowed): it is not restarted any more"),
                              line("Remove the cause, then troika start ", r.plan.name, "."),
                              {{"failures", static_cast<std::int64_t>(r.failures.size())}}));
      add_findings(findings, evidence);  // of every failure within the window
      if (r.failures.size() > plan.restart.attempts + 1) r.failures.erase(r.failures.begin());
    }
  } else {
    add_findings(r.stop_findings, findings);
  }
  r.findings = findings;
  const std::string title = findings.front().message;
  end_epoch(r, title);
  // An incident that is open already is named after what began it.
  if (r.incident_open) r.failed.clear();
  open_incident(r, title, std::move(findings));
}

// Decides the end of the epoch in force. What follows (stops, their repeats, the proof of release) is in
// Stopping.
void ClusterState::end_epoch(ReplicaState& r, std::string reason) {
  const bool gateway_may_know = r.proven;
  r.reconciling = false;
  r.proven = false;
  r.ended = true;
  r.probe_request = 0;
  r.not_before = now;
  enter(r, Phase::Stopping, std::move(reason));
  for (RankState& rank : r.ranks)
    rank.stop_sent = false;
  persist(r);
  update_route(gateway_may_know);
}

void ClusterState::on(const GatewayDrained& event) {
  ReplicaState* r = replica_named(event.replica);
  if (r == nullptr || r->phase != Phase::Draining || event.epoch != r->epoch) return;
  end_epoch(*r, "drained");
}

bool ClusterState::advance_draining(ReplicaState& r) {
  if (now - r.waited_from < plan.patience.drain) return false;
  r.stop_findings.push_back(Finding{
      Code::TRUNCATED,
      Severity::Warning,
      {},
      r.plan.name,
      line("requests were still in flight after ", duration_text(plan.patience.drain), " and were cut"),
      {},
      "Allow a longer drain, or look why they take so long."});
  end_epoch(r, "drained as long as allowed");
  return true;
}

void ClusterState::send_stop(ReplicaState& r, std::size_t k) {
  RankState& rank = r.ranks[k];
  rank.stop_sent = true;
  rank.stop_sent_at = now;
  out.push_back(SendStop{r.plan.nodes[k],
                         {r.plan.name, Rank{static_cast<std::uint32_t>(k)}},
                         std::max(r.epoch, r.heard),
                         plan.patience.stop_grace,
                         r.reason});
}

bool ClusterState::advance_stopping(ReplicaState& r) {
  bool released = true;
  for (std::size_t k = 0; k < r.ranks.size(); ++k) {
    RankState& rank = r.ranks[k];
    const NodeState& node = node_of(r, k);
    released =
        released && node.connected && rank.fact == StageFact::Absent && !has_stray_of(node, r.plan.name);
    if (!node.connected || rank.fact == StageFact::Absent) continue;
    if (!rank.stop_sent || now - rank.stop_sent_at >= plan.patience.resend) send_stop(r, k);
  }
  if (!released) return false;
  after_release(r);
  return true;
}

void ClusterState::after_release(ReplicaState& r) {
  r.released = true;
  for (RankState& rank : r.ranks) {
    rank.rebooted = false;
    rank.boot_id.clear();
  }
  note_incident(r, line("nothing is left of epoch ", r.epoch, " on any node"));
  if (!r.desired) {
    enter(r, Phase::Stopped, r.epoch.count == 0 ? "never started" : "stopped, and nothing of it is left");
    close_incident(r, "stopped by the operator");
  } else if (r.breaker_open) {
    enter(r, Phase::Failed, "it failed again within the restart window; an operator must start it");
  } else if (!r.failures.empty() && r.failures.back().epoch == r.epoch) {
    r.not_before = now + plan.restart.backoff;
    enter(r, Phase::Stopped,
          line("automatic restart ", r.failures.size(), " of ", plan.restart.attempts, " in ",
               duration_text(plan.restart.backoff)));
  } else {
    r.not_before = now;
    enter(r, Phase::Stopped, "is about to be verified");
  }
  persist(r);
}

// Why a replica that should be started or released cannot be: nodes that are away, leftovers.
std::vector<Finding> ClusterState::blockers(const ReplicaState& r) const {
  std::vector<Finding> findings;
  for (std::size_t k = 0; k < r.ranks.size(); ++k) {
    const NodeState& node = node_of(r, k);
    const std::string& at = r.plan.nodes[k];
    if (!node.connected) {
      findings.push_back(finding(Code::NODE_LOST, at, at, line(at, " is not connected"),
                                 "Look at the node's power, console and cables, and at its troika-agent."));
      continue;
    }
    const auto left = [&](const std::string& stage, StageFact fact, const std::vector<Finding>& told) {
      const bool not_looked =
          std::any_of(told.begin(), told.end(), [](const Finding& f) { return f.code == Code::CANNOT_TELL; });
      const bool found = std::any_of(told.begin(), told.end(),
                                     [](const Finding& f) { return f.code == Code::NOT_RELEASED; });
      if (fact == StageFact::NotReleased && (found || not_looked)) {
        add_findings(findings, told);
      } else {
        findings.push_back(finding(Code::NOT_RELEASED, at, at, line(stage, " is not gone from ", at),
                                   "Look for its processes on the node."));
      }
    };
    const std::string own = text(StageId{r.plan.name, Rank{static_cast<std::uint32_t>(k)}});
    if (r.ranks[k].fact != StageFact::Absent) left(own, r.ranks[k].fact, r.ranks[k].findings);
    for (const Stray& s : node.strays)
      left(line(text(s.stage), " (epoch ", s.epoch, ")"), s.fact, s.findings);
  }
  if (findings.size() > kMaxFindings) findings.resize(kMaxFindings);
  return findings;
}

// Tells of a wait for nodes once it is long, so that it is neither silent nor noisy.
void ClusterState::watch_blocked(ReplicaState& r) {
  const bool waits = r.phase == Phase::Stopping ||
                     (r.phase == Phase::Stopped && r.desired && !r.breaker_open) ||
                     (r.phase == Phase::Verifying && !clean(r));
  std::vector<Finding> findings;
  if (waits && !r.reconciling) findings = blockers(r);
  if (findings.empty()) {
    r.blocked = r.blocked_told = false;
    return;
  }
  if (!r.blocked) {
    r.blocked = true;
    r.blocked_since = now;
  }
  const std::string first = findings.front().message;
  if (r.phase == Phase::Stopped) r.reason = line("waits: ", first);
  if (r.blocked_told || now - r.blocked_since < plan.patience.blocked) return;
  r.blocked_told = true;
  r.findings = findings;
  const std::string_view what = r.phase == Phase::Stopping ? " is not released: " : " cannot start: ";
  open_incident(r, line("replica ", r.plan.name, what, first), std::move(findings));
}

}  // namespace troika::policies
