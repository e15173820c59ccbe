#include "cli/demo/look.hpp"

#include <algorithm>

namespace troika::demo {

using protocol::ReplicaStatus;
using protocol::StageStatus;
using protocol::StatusReply;

const ReplicaStatus* replica(const StatusReply& status, const std::string& name) {
  for (const ReplicaStatus& one : status.replicas)
    if (one.replica == name) return &one;
  return nullptr;
}

const StageStatus* stage(const StatusReply& status, const std::string& id) {
  for (const ReplicaStatus& one : status.replicas)
    for (const StageStatus& rank : one.stages)
      if (rank.stage == id) return &rank;
  return nullptr;
}

bool all_connected(const StatusReply& status) {
  return std::all_of(status.nodes.begin(), status.nodes.end(),
                     [](const auto& node) { return node.connected; });
}

bool serves(const StatusReply& status, const std::string& name) {
  const ReplicaStatus* const one = replica(status, name);
  if (one == nullptr || one->phase != "serving" || !one->proven) return false;
  return std::all_of(one->stages.begin(), one->stages.end(), [&](const StageStatus& rank) {
    return rank.state == "ready" && rank.pid != 0 && rank.epoch == one->epoch;
  });
}

bool all_serve(const StatusReply& status) {
  return std::all_of(status.replicas.begin(), status.replicas.end(),
                     [&](const ReplicaStatus& one) { return serves(status, one.replica); });
}

std::string routed(const StatusReply& status) {
  return status.gateway.connected && !status.gateway.targets.empty() ? status.gateway.targets[0].replica : "";
}

std::string other(const StatusReply& status, const std::string& name) {
  for (const ReplicaStatus& one : status.replicas)
    if (one.replica != name) return one.replica;
  return "";
}

std::map<std::string, Running> running_stages(const StatusReply& status) {
  std::map<std::string, Running> out;
  for (const ReplicaStatus& one : status.replicas)
    for (const StageStatus& rank : one.stages)
      out[rank.stage] = {rank.pid, rank.epoch.count};
  return out;
}

}  // namespace troika::demo
