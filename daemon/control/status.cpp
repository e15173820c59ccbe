#include "daemon/control/status.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "policies/partition.hpp"
#include "protocol/codec.hpp"

namespace troika::daemon {
namespace {

// Open incidents shown; all of them are listed by `troika incidents`.
constexpr std::uint32_t kIncidentsShown = 20;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

protocol::StageStatus stage_status(const Leader& leader, const policies::ReplicaView& view,
                                   const config::ReplicaConfig& replica, std::uint32_t rank) {
  protocol::StageStatus status;
  const StageId id{replica.name, Rank{rank}};
  status.stage = text(id);
  status.node = replica.nodes[rank];
  status.layers = policies::layer_range(replica.layers, Rank{rank});
  status.epoch = view.epoch;
  const auto node = leader.nodes().all().find(status.node);
  if (node == leader.nodes().all().end() || !node->second.line) {
    status.state = "unknown";
    return status;
  }
  const auto known = node->second.stages.find(id);
  if (known == node->second.stages.end() || known->second.epoch != view.epoch) {
    status.state = "stopped";
    return status;
  }
  const auto& report = known->second;
  status.state = protocol::name(report.state);
  status.pid = report.pid;
  status.progress = report.progress;
  status.progress_total = report.progress_total;
  status.detail = report.detail;
  return status;
}

protocol::ReplicaStatus replica_status(const Leader& leader, const policies::ReplicaView& view,
                                       const config::ReplicaConfig& replica) {
  protocol::ReplicaStatus status;
  status.replica = view.name;
  status.desired = view.desired_running ? "running" : "stopped";
  status.phase = name(view.phase);
  status.epoch = view.epoch;
  status.proven = view.proven;
  status.routed = view.routed;
  status.breaker_open = view.breaker_open;
  status.shards_proven = leader.nodes().shards_proven(replica);
  status.phase_seconds = seconds(leader.now() - view.phase_since);
  status.reason = view.reason;
  status.findings = view.findings;
  for (std::uint32_t rank = 0; rank < replica.nodes.size(); ++rank)
    status.stages.push_back(stage_status(leader, view, replica, rank));
  return status;
}

std::string verifying_text(const std::string& what_for, std::uint32_t files, std::uint32_t files_total,
                           Bytes done, Bytes total) {
  constexpr double kMega = 1e6;
  return fmt::format("{}: {}/{} files, {:.1f} of {:.1f} MB", what_for, files, files_total,
                     static_cast<double>(done.count) / kMega, static_cast<double>(total.count) / kMega);
}

protocol::NodeStatus node_status(const Leader& leader, const std::string& node_name, const Node& node) {
  protocol::NodeStatus status;
  status.node = node_name;
  status.connected = node.line != nullptr;
  if (node.hello) status.version = node.hello->version;
  if (node.heard) status.heartbeat_age_seconds = seconds(leader.now() - *node.heard);
  status.facts = node.facts;
  for (const auto& [request, running] : node.verifying) {
    const auto& p = running.progress;
    status.verifying.push_back(
        verifying_text(running.stage.replica, p.files_done, p.files_total, p.done, p.total));
  }
  if (leader.audit())
    for (const auto& one : leader.audit()->nodes())
      if (one.node == node_name && !one.answered)
        status.verifying.push_back(
            verifying_text("audit", one.files_done, one.files_total, one.done, one.total));
  return status;
}

}  // namespace

Result<protocol::StatusReply> status_reply(const Leader& leader, const GatewaySeat& gateway,
                                           Incidents& incidents, std::uint64_t re) {
  protocol::StatusReply reply;
  reply.re = re;
  reply.cluster = leader.config().cluster;
  reply.version = TROIKA_VERSION;
  reply.term = leader.cluster().term();
  reply.leader_pid = ::getpid();
  for (const auto& view : leader.cluster().replicas())
    if (const auto* replica = replica_named(leader.config(), view.name))
      reply.replicas.push_back(replica_status(leader, view, *replica));
  for (const auto& [node_name, node] : leader.nodes().all())
    reply.nodes.push_back(node_status(leader, node_name, node));
  reply.gateway = gateway.status();
  protocol::IncidentsRequest open;
  open.open_only = true;
  open.limit = kIncidentsShown;
  TROIKA_TRY(listed, incidents.list(open));
  reply.open_incidents = std::move(listed);
  return reply;
}

}  // namespace troika::daemon
