#include "daemon/cluster/mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troika::daemon {

policies::ClusterPlan cluster_plan(const config::ClusterConfig& config) {
  policies::ClusterPlan plan;
  for (const auto& replica : config.replicas)
    plan.replicas.push_back({replica.name, replica.nodes, replica.layers});
  plan.restart.attempts = config.restart.attempts;
  plan.restart.window = config.restart.window;
  switch (config.failover) {
    case config::FailoverMode::ActiveStandby:
      plan.failover = policies::FailoverMode::ActiveStandby;
      break;
    case config::FailoverMode::ActiveActive:
      plan.failover = policies::FailoverMode::ActiveActive;
      break;
  }
  return plan;
}

protocol::EnginePlan engine_plan(const config::ClusterConfig& config, const config::ReplicaConfig& replica) {
  protocol::EnginePlan plan;
  plan.kind = name(config.engine.kind);
  plan.model = config.model.name;
  plan.context_length = config.engine.context_length;
  plan.chunked_prefill = config.engine.chunked_prefill;
  plan.max_running = config.engine.max_running;
  plan.layers = replica.layers;
  plan.decode_graph_batch = config.engine.decode_graph_batch;
  plan.memory_fraction = config.engine.memory_fraction;
  return plan;
}

policies::NodeCopies copies_of(const std::string& node, const protocol::VerifyDone& proof) {
  return {node, proof.manifest_digest, proof.unproven, proof.all_proven_but_these};
}

policies::EngineSettings settings(const protocol::EnginePlan& plan) {
  return {plan.model, plan.context_length, plan.chunked_prefill, plan.max_running, plan.layers};
}

policies::ProbeFacts probe_facts(const protocol::ProbeDone& done) {
  return {done.completed, done.completion_tokens, done.counter_advance, done.error, settings(done.effective)};
}

policies::StageFact stage_fact(protocol::StageState state) {
  switch (state) {
    case protocol::StageState::Starting:
      return policies::StageFact::Starting;
    case protocol::StageState::Loading:
      return policies::StageFact::Loading;
    case protocol::StageState::Ready:
      return policies::StageFact::Ready;
    case protocol::StageState::Exited:
      return policies::StageFact::Exited;
    case protocol::StageState::Released:
      return policies::StageFact::Absent;
    case protocol::StageState::NotReleased:
    // Not looked is not good.
    case protocol::StageState::CannotTell:
      return policies::StageFact::NotReleased;
  }
  broken_invariant("stage state", __FILE__, __LINE__);
}

policies::ReportedStage reported_stage(const protocol::StageReport& report) {
  policies::ReportedStage out;
  out.stage = {report.replica, report.rank};
  out.epoch = report.epoch;
  out.fact = stage_fact(report.state);
  out.progress = report.progress;
  out.findings = report.findings;
  out.exit_requested = report.exit.requested;
  return out;
}

policies::AgentConnected agent_connected(const protocol::Hello& hello) {
  policies::AgentConnected out;
  out.node = hello.node;
  out.highest_term = hello.highest_term;
  out.highest_epochs = hello.highest_epochs;
  out.boot_id = hello.boot_id;
  for (const auto& stage : hello.stages)
    out.stages.push_back(reported_stage(stage));
  return out;
}

policies::Wish wish(protocol::Verb verb) {
  switch (verb) {
    case protocol::Verb::Start:
      return policies::Wish::Start;
    case protocol::Verb::Stop:
      return policies::Wish::Stop;
    case protocol::Verb::Restart:
      return policies::Wish::Restart;
    case protocol::Verb::Drain:
      return policies::Wish::Drain;
    case protocol::Verb::Failover:
      return policies::Wish::Failover;
  }
  broken_invariant("verb", __FILE__, __LINE__);
}

const config::ReplicaConfig* replica_named(const config::ClusterConfig& config, std::string_view name) {
  const auto found = std::find_if(config.replicas.begin(), config.replicas.end(),
                                  [&](const config::ReplicaConfig& r) { return r.name == name; });
  return found == config.replicas.end() ? nullptr : &*found;
}

std::string_view node_of(const config::ClusterConfig& config, const StageId& stage) {
  const auto* replica = replica_named(config, stage.replica);
  if (replica == nullptr || stage.rank.count >= replica->nodes.size()) return {};
  return replica->nodes[stage.rank.count];
}

Finding refusal_finding(Code code, const std::string& node, const std::string& subject,
                        const protocol::Refusal& refusal) {
  return finding(code, node, subject, node + " refused: " + refusal.message,
                 refusal.code == "NOT_ALLOWED" ? "Allow this engine in agent.toml of the node." : "",
                 {{"refusal", refusal.code}});
}

protocol::Route route_message(Term term, std::uint64_t generation, const policies::SetRoute& set,
                              const config::ClusterConfig& config,
                              const std::function<std::string(const std::string& node)>& relay_address) {
  protocol::Route route;
  route.term = term;
  route.generation = generation;
  route.reason = set.reason;
  bool some_drain = false;
  for (const auto& entry : set.entries) {
    if (entry.draining) {
      some_drain = true;
      continue;
    }
    protocol::RouteTarget target;
    target.node = node_of(config, {entry.replica, Rank{0}});
    target.relay_address = relay_address(target.node);
    if (target.relay_address.empty()) continue;
    target.replica = entry.replica;
    target.epoch = entry.epoch;
    target.kv_capacity = entry.kv_capacity;
    route.targets.push_back(std::move(target));
  }
  route.spread = config.failover == config::FailoverMode::ActiveActive;
  route.draining = some_drain && route.targets.empty();
  return route;
}

std::string progress_text(const policies::ReplicaView& view, const std::vector<NodeProgress>& verifying,
                          const std::vector<protocol::StageReport>& stages) {
  std::string text = fmt::format("{}: {}", view.name, name(view.phase));
  if (view.phase == policies::Phase::Verifying) {
    for (const auto& p : verifying)
      text += fmt::format(", {}/{} files on {}", p.files_done, p.files_total, p.node);
    return text;
  }
  if (view.phase == policies::Phase::Loading || view.phase == policies::Phase::Starting) {
    for (const auto& stage : stages) {
      if (stage.epoch != view.epoch || stage.progress_total.count == 0) continue;
      text += fmt::format(", {}/{} {} %", view.name, stage.rank.count,
                          100 * stage.progress.count / stage.progress_total.count);
    }
    return text;
  }
  if (!view.reason.empty()) text += ", " + view.reason;
  return text;
}

}  // namespace troika::daemon
