#include "daemon/cluster/nodes.hpp"

#include <utility>

namespace troika::daemon {

Nodes::Nodes(const config::ClusterConfig& config) {
  for (const auto& node : config.nodes)
    nodes_[node.name];
}

Node* Nodes::find(const std::string& name) {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

void Nodes::connected(Node& node, std::shared_ptr<AgentLine> line, protocol::Hello hello, Instant now) {
  node.line = std::move(line);
  node.heard = now;
  node.verifying.clear();
  node.stages.clear();
  for (const auto& report : hello.stages)
    heard(node, report);
  node.hello = std::move(hello);
}

void Nodes::disconnected(Node& node) {
  node.line.reset();
  node.verifying.clear();
}

void Nodes::heard(Node& node, const protocol::StageReport& report) {
  const StageId id{report.replica, report.rank};
  const auto known = node.stages.find(id);
  if (known == node.stages.end()) {
    // As many as the configuration could ever put on one node, were it changed a few times.
    static constexpr std::size_t kMostStages = 64;
    if (node.stages.size() < kMostStages) node.stages.emplace(id, report);
  } else if (report.epoch >= known->second.epoch) {
    known->second = report;
  }
}

void Nodes::recall(const std::vector<Verification>& verifications) {
  for (const auto& verification : verifications)
    if (auto* node = find(verification.node)) node->proofs[verification.replica] = verification.done;
}

std::string Nodes::relay_address(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.hello ? found->second.hello->relay_address : std::string{};
}

std::vector<NodeProgress> Nodes::verifying(const std::string& replica) const {
  std::vector<NodeProgress> out;
  for (const auto& [name, node] : nodes_)
    for (const auto& [request, running] : node.verifying)
      if (running.stage.replica == replica)
        out.push_back({name, running.progress.files_done, running.progress.files_total});
  return out;
}

std::vector<protocol::StageReport> Nodes::stages_of(const std::string& replica) const {
  std::vector<protocol::StageReport> out;
  for (const auto& [name, node] : nodes_)
    for (const auto& [id, report] : node.stages)
      if (id.replica == replica) out.push_back(report);
  return out;
}

std::uint32_t Nodes::shards_proven(const config::ReplicaConfig& replica) const {
  std::uint32_t sum = 0;
  for (const auto& name : replica.nodes) {
    const auto node = nodes_.find(name);
    if (node == nodes_.end()) continue;
    const auto proof = node->second.proofs.find(replica.name);
    if (proof != node->second.proofs.end()) sum += proof->second.shards;
  }
  return sum;
}

}  // namespace troika::daemon
