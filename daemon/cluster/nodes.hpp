// What the leader heard of each node last, for people (status) and for addresses. Decisions are
// policies/lifecycle's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/cluster/mapping.hpp"
#include "daemon/store/store.hpp"
#include "protocol/messages.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon {

// The way to one agent, for as long as its connection lives.
class AgentLine {
 public:
  virtual ~AgentLine() = default;
  virtual void send(std::string message) = 0;  // an encoded message
  virtual void close() = 0;
};

// A Verify that is not answered yet.
struct RunningVerify {
  StageId stage;
  protocol::VerifyProgress progress;
};

struct Node {
  std::shared_ptr<AgentLine> line;       // null: not connected
  std::optional<protocol::Hello> hello;  // the last one, also after its connection ended
  std::optional<Instant> heard;
  protocol::NodeFacts facts;
  std::map<StageId, protocol::StageReport> stages;     // the newest epoch heard of
  std::map<std::uint64_t, RunningVerify> verifying;    // by request
  std::map<std::string, protocol::VerifyDone> proofs;  // the last of each replica
};

class Nodes {
 public:
  explicit Nodes(const config::ClusterConfig& config);

  Node* find(const std::string& name);
  const std::map<std::string, Node>& all() const { return nodes_; }

  // A new connection takes the place of the last one.
  void connected(Node& node, std::shared_ptr<AgentLine> line, protocol::Hello hello, Instant now);
  void disconnected(Node& node);
  void heard(Node& node, const protocol::StageReport& report);
  void recall(const std::vector<Verification>& verifications);

  std::string relay_address(const std::string& node) const;
  std::vector<NodeProgress> verifying(const std::string& replica) const;
  std::vector<protocol::StageReport> stages_of(const std::string& replica) const;
  // Shards proven for a replica, over its nodes, by the last verification of each.
  std::uint32_t shards_proven(const config::ReplicaConfig& replica) const;

 private:
  std::map<std::string, Node> nodes_;
};

}  // namespace troika::daemon
