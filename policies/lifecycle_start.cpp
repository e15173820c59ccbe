// From stopped to serving: verifying, starting, loading, proving.
#include <algorithm>

#include "policies/lifecycle_state.hpp"
#include "policies/line.hpp"
#include "vocabulary/time.hpp"

namespace troika::policies {

bool ClusterState::clean(const ReplicaState& r) const {
  for (std::size_t k = 0; k < r.ranks.size(); ++k) {
    const NodeState& node = node_of(r, k);
    if (!node.connected || r.ranks[k].fact != StageFact::Absent || !node.strays.empty()) return false;
  }
  return true;
}

// Where a replica is wanted, not barred, and nothing of any epoch is left on any of its nodes.
bool ClusterState::try_start(ReplicaState& r) {
  if (!r.desired || r.breaker_open || !r.released || now < r.not_before || !clean(r)) return false;
  enter(r, Phase::Verifying, "its nodes prove model, memory, links and leftovers");
  r.findings.clear();
  for (std::size_t k = 0; k < r.ranks.size(); ++k) {
    r.ranks[k].findings.clear();
    r.ranks[k].verified = false;
    send_verify(r, k);
  }
  return true;
}

void ClusterState::send_verify(ReplicaState& r, std::size_t k) {
  RankState& rank = r.ranks[k];
  rank.verify_request = new_request();
  rank.verify_progress = Bytes{};
  rank.findings.clear();
  const StageId stage{r.plan.name, Rank{static_cast<std::uint32_t>(k)}};
  out.push_back(SendVerify{r.plan.nodes[k], rank.verify_request, stage});
}

void ClusterState::on(const VerifyProgressed& event) {
  if (hear(event.node) == nullptr || event.request == 0) return;
  for (ReplicaState& r : replicas) {
    for (RankState& rank : r.ranks) {
      if (rank.verify_request != event.request || event.done <= rank.verify_progress) continue;
      rank.verify_progress = event.done;
      r.waited_from = now;
    }
  }
}

void ClusterState::on(const VerifyFinished& event) {
  if (hear(event.node) == nullptr || event.request == 0) return;
  for (ReplicaState& r : replicas) {
    for (RankState& rank : r.ranks) {
      if (r.phase != Phase::Verifying || rank.verify_request != event.request) continue;
      rank.verify_request = 0;
      rank.verified = true;
      rank.findings.clear();
      add_findings(rank.findings, event.findings);
      rank.copies = event.copies;
      r.waited_from = now;
    }
  }
}

bool ClusterState::advance_verifying(ReplicaState& r) {
  bool all_verified = true;
  bool any_asked = false;
  for (std::size_t k = 0; k < r.ranks.size(); ++k) {
    const NodeState& node = node_of(r, k);
    if (lost(node)) {
      enter(r, Phase::Stopped, line("waits for ", r.plan.nodes[k], ", which was lost while verifying"));
      return true;
    }
    RankState& rank = r.ranks[k];
    // What a node proved before it was away is void: it may have been rebooted, or its disk changed.
    if (node.connected && !rank.verified && rank.verify_request == 0) send_verify(r, k);
    all_verified = all_verified && rank.verified;
    any_asked = any_asked || rank.verify_request != 0;
  }
  if (any_asked) {
    if (now - r.waited_from < plan.patience.no_progress) return false;
    for (std::size_t k = 0; k < r.ranks.size(); ++k) {
      if (r.ranks[k].verify_request == 0) continue;
      r.ranks[k].findings.push_back(
          finding(Code::CANNOT_TELL, r.plan.nodes[k], "verification",
                  line("no progress of the verification for ", duration_text(plan.patience.no_progress)),
                  "Look at the agent's log on the node."));
    }
    return judge_verification(r);
  }
  if (!all_verified) return false;  // a node is away; it is asked when it comes back
  return judge_verification(r);
}

// All nodes have answered, so that an operator sees every node's errors at once, not one a try.
bool ClusterState::judge_verification(ReplicaState& r) {
  std::vector<Finding> findings;
  std::vector<NodeCopies> copies;
  for (const RankState& rank : r.ranks) {
    add_findings(findings, rank.findings);
    if (rank.verified) copies.push_back(rank.copies);
  }
  tell_good_copies(findings, copies);
  const Verdict verdict = verdict_of(findings);
  if (verdict == Verdict::Error || verdict == Verdict::CannotTell) {
    // Not a crash: no engine was touched and no automatic restart is spent; only an operator tries again.
    enter(r, Phase::Failed,
          verdict == Verdict::Error ? "the verification found errors; nothing was started"
                                    : "the verification could not tell; nothing was started");
    r.findings = findings;
    for (RankState& rank : r.ranks)
      rank.verify_request = 0;
    open_incident(r, line("replica ", r.plan.name, " was not started: ", r.reason), std::move(findings));
    return true;
  }
  if (!clean(r)) {
    // Something turned up, or a node answers about its leftovers; the sweep deals with it, then this goes on.
    r.reason = "verified; waits until nothing is left on its nodes";
    return false;
  }
  r.findings = std::move(findings);
  begin_epoch(r);
  return true;
}

void ClusterState::begin_epoch(ReplicaState& r) {
  r.epoch = next(std::max(r.epoch, r.heard));
  r.heard = r.epoch;
  r.proven = false;
  r.ended = false;
  r.failed.clear();
  r.released = false;
  r.kv_capacity = Tokens{};
  r.probe_request = 0;
  enter(r, Phase::Starting, line("starts epoch ", r.epoch));
  persist(r);  // before any agent hears of it
  note_incident(r, line("started epoch ", r.epoch));
  for (std::size_t k = 0; k < r.ranks.size(); ++k) {
    RankState& rank = r.ranks[k];
    rank = RankState{};
    rank.boot_id = node_of(r, k).boot_id;
    out.push_back(SendStart{r.plan.nodes[k], {r.plan.name, Rank{static_cast<std::uint32_t>(k)}}, r.epoch});
  }
}

// Starting and Loading: forward when every rank is; stuck only without any progress (slow is not stuck: mode
// 52).
bool ClusterState::advance_loading(ReplicaState& r) {
  const auto all_at_least = [&](StageFact least) {
    return std::all_of(r.ranks.begin(), r.ranks.end(),
                       [&](const RankState& rank) { return alive(rank.fact) && rank.fact >= least; });
  };
  if (all_at_least(StageFact::Ready)) {
    enter(r, Phase::Proving, "every rank is ready by its own word; a completion is asked");
    return true;
  }
  if (r.phase == Phase::Starting && all_at_least(StageFact::Loading)) {
    enter(r, Phase::Loading, "its ranks load their layers");
    return true;
  }
  if (now - r.waited_from < plan.patience.no_progress) return false;
  std::vector<Finding> causes;
  for (std::size_t k = 0; k < r.ranks.size(); ++k) {
    const StageId stage{r.plan.name, Rank{static_cast<std::uint32_t>(k)}};
    if (r.ranks[k].fact == StageFact::Ready) continue;
    causes.push_back(
        finding(Code::START_FAILED, r.plan.nodes[k], text(stage),
                line("no progress for ", duration_text(plan.patience.no_progress), " after ",
                     r.ranks[k].progress, " bytes"),
                line("Read the log of ", text(stage), " on its node, in the run_dir of its agent.")));
  }
  fail(r, std::move(causes));
  return true;
}

bool ClusterState::advance_proving(ReplicaState& r) {
  const StageId head{r.plan.name, Rank{0}};
  if (now - r.waited_from >= plan.patience.prove) {
    fail(r, {finding(Code::NOT_READY, r.plan.nodes[0], text(head),
                     line("no completion came within ", duration_text(plan.patience.prove)),
                     line("Read the log of ", text(head), " on its node, in the run_dir of its agent."))});
    return true;
  }
  if (r.probe_request == 0 && node_of(r, 0).connected) {
    r.probe_request = new_request();
    out.push_back(SendProbe{r.plan.nodes[0], r.probe_request, r.plan.name, r.epoch});
  }
  return false;
}

void ClusterState::on(const ProbeFinished& event) {
  for (ReplicaState& r : replicas) {
    if (r.reconciling || r.phase != Phase::Proving) continue;
    if (event.request == 0 || r.probe_request != event.request) continue;
    r.probe_request = 0;
    const Verdict verdict = verdict_of(event.findings);
    if (verdict == Verdict::Error || verdict == Verdict::CannotTell) {
      fail(r, event.findings);
      continue;
    }
    // A rank that ended meanwhile is a failure, whatever rank 0 answered.
    if (fail_on_causes(r)) continue;
    r.kv_capacity = event.kv_capacity;
    add_findings(r.findings, event.findings);
    serve(r, line("epoch ", r.epoch, " is proven"));
  }
}

void ClusterState::serve(ReplicaState& r, std::string reason) {
  const bool news = !r.proven;
  r.proven = true;
  enter(r, Phase::Serving, std::move(reason));
  if (news) persist(r);  // before the gateway hears of it
  update_route(false);
  close_incident(r, line("serves again with epoch ", r.epoch));
}

}  // namespace troika::policies
