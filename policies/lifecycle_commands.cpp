// What operators ask for, and when each of them is answered: once, at the end or with what stopped it.
#include <algorithm>

#include "policies/lifecycle_state.hpp"
#include "policies/line.hpp"

namespace troika::policies {
namespace {

bool wants_running(Wish wish) {
  switch (wish) {
    case Wish::Start:
    case Wish::Restart:
    case Wish::Failover:
      return true;
    case Wish::Stop:
    case Wish::Drain:
      return false;
  }
  broken_invariant("wish", __FILE__, __LINE__);
}

void add_outcome(CommandState& command, const Outcome& outcome) {
  command.verdict = std::max(command.verdict, outcome.verdict);
  command.text += (command.text.empty() ? "" : "; ") + outcome.text;
  add_findings(command.findings, outcome.findings);
}

}  // namespace

void ClusterState::refuse(const Wished& wished, std::string text) {
  if (wished.command == 0) return;
  const Code code = wished.replica.empty() ? Code::NOT_STARTED : Code::NOT_FOUND;
  Finding why = finding(code, {}, wished.replica, text, "Name one of the configured replicas.");
  out.push_back(FinishCommand{wished.command, Verdict::Error, std::move(text), {std::move(why)}});
}

// Indexes of the replicas that a wish is about; empty where it was refused.
std::vector<std::size_t> ClusterState::targets_of(const Wished& wished) {
  if (!wished.replica.empty()) {
    if (const ReplicaState* r = replica_named(wished.replica)) return {index_of(*r)};
    std::string names;
    for (const ReplicaState& r : replicas)
      names += (names.empty() ? "" : ", ") + r.plan.name;
    refuse(wished, line("there is no replica \"", wished.replica, "\"; there are: ", names));
    return {};
  }
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < replicas.size(); ++i)
    all.push_back(i);
  if (wished.wish != Wish::Failover) return all;
  std::erase(all, active);
  if (all.empty()) {
    refuse(wished, "there is no other replica to fail over to");
    return {};
  }
  const auto serving =
      std::find_if(all.begin(), all.end(), [&](std::size_t i) { return routable(replicas[i]); });
  return {serving == all.end() ? all.front() : *serving};
}

// Earlier commands that this wish makes impossible end here. Wishes for the same outcome wait for it
// together.
void ClusterState::supersede(std::size_t replica, Wish wish, std::uint64_t by) {
  const std::string how =
      line("superseded by ", name(wish), by == 0 ? std::string() : line(" (command ", by, ")"));
  for (CommandState& command : commands) {
    const bool other_failover = wish == Wish::Failover && command.wish == Wish::Failover;
    for (std::size_t i = command.pending.size(); i-- > 0;) {
      const std::size_t about = command.pending[i];
      const bool opposed = about == replica && wants_running(command.wish) != wants_running(wish);
      if (!opposed && !(other_failover && about != replica)) continue;
      command.pending.erase(command.pending.begin() + static_cast<std::ptrdiff_t>(i));
      add_outcome(command, {Verdict::Error, line(replicas[about].plan.name, ": ", how), {}});
    }
  }
}

void ClusterState::on(const Wished& event) {
  if (event.command != 0 && commands.size() >= kMaxCommands) {
    out.push_back(FinishCommand{
        event.command, Verdict::Error, line("refused: ", kMaxCommands, " commands are waiting already"), {}});
    return;
  }
  const std::vector<std::size_t> targets = targets_of(event);
  if (targets.empty()) return;
  // Known of all before the first is stopped, so that the gateway does not turn to the next one for a moment.
  if (event.wish == Wish::Stop)
    for (const std::size_t i : targets)
      replicas[i].desired = false;
  for (const std::size_t i : targets) {
    ReplicaState& r = replicas[i];
    supersede(i, event.wish, event.command);
    r.stop_findings.clear();
    if (!wants_running(event.wish) && failover_to == i) failover_to = SIZE_MAX;
    switch (event.wish) {
      case Wish::Start:
        start_wish(r);
        break;
      case Wish::Stop:
        stop_wish(r);
        break;
      case Wish::Restart:
        restart_wish(r);
        break;
      case Wish::Drain:
        drain_wish(r);
        break;
      case Wish::Failover:
        failover_to = i;
        start_wish(r);
        break;
    }
  }
  if (event.command == 0) return;
  CommandState command;
  command.id = event.command;
  command.wish = event.wish;
  command.at = now;
  command.pending = targets;
  commands.push_back(std::move(command));
}

// The operator takes the responsibility: attempts are forgotten and the breaker is closed.
void ClusterState::start_wish(ReplicaState& r) {
  const bool barred = r.phase == Phase::Failed;
  r.desired = true;
  r.breaker_open = false;
  r.failures.clear();
  r.not_before = now;
  if (barred) {
    note_incident(r, "the operator starts it again");
    enter(r, Phase::Stopped, "is about to be verified");
  }
  if (r.phase == Phase::Draining) {
    if (r.reconciling)
      enter(r, Phase::Proving, "the drain was called off; waits for word from its nodes");
    else
      enter(r, Phase::Serving, "the drain was called off");
  }
  persist(r);
}

void ClusterState::stop_wish(ReplicaState& r) {
  r.desired = false;
  r.not_before = now;
  note_incident(r, "the operator stops it");
  switch (r.phase) {
    case Phase::Stopped:
    case Phase::Verifying:
    case Phase::Failed:
      for (RankState& rank : r.ranks)
        rank.verify_request = 0;
      enter(r, Phase::Stopped, "stopped by the operator");
      close_incident(r, "stopped by the operator");
      persist(r);
      return;
    case Phase::Stopping:
      r.reason = "stopped by the operator";
      persist(r);
      return;
    case Phase::Starting:
    case Phase::Loading:
    case Phase::Proving:
    case Phase::Serving:
    case Phase::Draining:
      end_epoch(r, "stopped by the operator");
      return;
  }
}

// Stop and start as one transaction with a new epoch.
void ClusterState::restart_wish(ReplicaState& r) {
  const bool runs = !r.released && r.phase != Phase::Stopping;
  start_wish(r);
  if (runs) end_epoch(r, "restarted by the operator");
}

void ClusterState::drain_wish(ReplicaState& r) {
  if (r.phase == Phase::Draining) return;
  if (r.phase != Phase::Serving && !presumed(r)) return stop_wish(r);
  r.desired = false;
  enter(r, Phase::Draining, "drained by the operator: requests in flight may finish");
  persist(r);
  update_route(true);
}

// Whether a command's wish about a replica is settled, and how.
bool ClusterState::outcome_of(const CommandState& command, const ReplicaState& r, Outcome& outcome) const {
  const std::string& replica = r.plan.name;
  const bool blocked_long = r.blocked && now - std::max(r.blocked_since, command.at) >= plan.patience.blocked;
  std::vector<Finding> findings;
  if (blocked_long) findings = blockers(r);
  if (!findings.empty()) {
    const Verdict verdict = verdict_of(findings);
    outcome = {verdict, line(replica, " is ", name(r.phase), ": ", findings.front().message),
               std::move(findings)};
    return true;
  }
  if (r.reconciling) return false;
  if (wants_running(command.wish)) {
    if (r.phase == Phase::Serving) {
      if (command.wish == Wish::Failover && index_of(r) != active) return false;
      outcome = {verdict_of(r.findings), line(replica, " serves (epoch ", r.epoch, ")"), r.findings};
      return true;
    }
    if (r.phase != Phase::Failed) return false;
    outcome = {std::max(verdict_of(r.findings), Verdict::CannotTell), line(replica, " failed: ", r.reason),
               r.findings};
    return true;
  }
  if (r.phase != Phase::Stopped || !r.released) return false;
  outcome = {verdict_of(r.stop_findings), line(replica, " is stopped"), r.stop_findings};
  return true;
}

void ClusterState::finish_commands() {
  if (failover_to < replicas.size() && replicas[failover_to].phase == Phase::Failed) failover_to = SIZE_MAX;
  for (CommandState& command : commands) {
    for (std::size_t i = 0; i < command.pending.size();) {
      Outcome outcome;
      if (!outcome_of(command, replicas[command.pending[i]], outcome)) {
        ++i;
        continue;
      }
      command.pending.erase(command.pending.begin() + static_cast<std::ptrdiff_t>(i));
      add_outcome(command, outcome);
    }
    if (command.pending.empty())
      out.push_back(
          FinishCommand{command.id, command.verdict, std::move(command.text), std::move(command.findings)});
  }
  std::erase_if(commands, [](const CommandState& command) { return command.pending.empty(); });
}

}  // namespace troika::policies
