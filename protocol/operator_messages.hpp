// Between operators and leader (control socket, or TLS with the operator role).
#pragma once

#include "protocol/agent_messages.hpp"
#include "protocol/gateway_messages.hpp"

namespace troika::protocol {

struct StatusRequest {
  TROIKA_FIELDS(StatusRequest, "status_request") { (void)m, (void)v; }
};

struct StageStatus {
  std::string stage;  // "a/0"
  std::string node;
  std::string state;  // a StageState in small letters, or "stopped", "unknown"
  Epoch epoch;
  std::int64_t pid = 0;
  LayerRange layers;
  Bytes progress;
  Bytes progress_total;
  std::string detail;
  TROIKA_FIELDS(StageStatus, "stage_status") {
    v.required("stage", m.stage);
    v.required("node", m.node);
    v.required("state", m.state);
    v.required("epoch", m.epoch);
    v.optional("pid", m.pid);
    v.required("layers", m.layers);
    v.optional("progress", m.progress);
    v.optional("progress_total", m.progress_total);
    v.optional("detail", m.detail);
  }
};

struct ReplicaStatus {
  std::string replica;
  std::string desired;  // "running", "stopped"
  std::string phase;    // stopped, verifying, starting, loading, proving, serving, draining, stopping, failed
  Epoch epoch;
  bool proven = false;
  bool routed = false;  // the gateway sends the next request here
  bool breaker_open = false;
  std::uint32_t shards_proven = 0;  // sum over its nodes, of the last verification
  double phase_seconds = 0;         // since the phase began
  std::string reason;
  std::vector<StageStatus> stages;
  std::vector<Finding> findings;  // why it does not serve, or of its last verification
  TROIKA_FIELDS(ReplicaStatus, "replica_status") {
    v.required("replica", m.replica);
    v.required("desired", m.desired);
    v.required("phase", m.phase);
    v.required("epoch", m.epoch);
    v.required("proven", m.proven);
    v.required("routed", m.routed);
    v.required("breaker_open", m.breaker_open);
    v.optional("shards_proven", m.shards_proven);
    v.optional("phase_seconds", m.phase_seconds);
    v.optional("reason", m.reason);
    v.required("stages", m.stages);
    v.optional("findings", m.findings);
  }
};

struct NodeStatus {
  std::string node;
  bool connected = false;
  std::string version;
  double heartbeat_age_seconds = -1;  // -1: never heard
  NodeFacts facts;
  std::vector<std::string> verifying;  // "a: 12/46 files, 1.2 of 3.4 GB", empty when idle
  TROIKA_FIELDS(NodeStatus, "node_status") {
    v.required("node", m.node);
    v.required("connected", m.connected);
    v.optional("version", m.version);
    v.optional("heartbeat_age_seconds", m.heartbeat_age_seconds);
    v.optional("facts", m.facts);
    v.optional("verifying", m.verifying);
  }
};

struct GatewayStatus {
  bool connected = false;
  std::int64_t pid = 0;
  std::string listen;
  std::uint64_t generation = 0;
  std::vector<RouteTarget> targets;
  std::string reason;
  GatewayStats stats;
  TROIKA_FIELDS(GatewayStatus, "gateway_status") {
    v.required("connected", m.connected);
    v.optional("pid", m.pid);
    v.optional("listen", m.listen);
    v.optional("generation", m.generation);
    v.optional("targets", m.targets);
    v.optional("reason", m.reason);
    v.optional("stats", m.stats);
  }
};

struct Incident {
  std::int64_t id = 0;
  std::string opened;   // RFC 3339
  std::string closed;   // empty: open
  std::string subject;  // "replica a", "node spark-1"
  std::string title;
  std::vector<Finding> findings;
  std::vector<std::string> actions;  // "2026-... stopped a/1 (epoch 7)"
  TROIKA_FIELDS(Incident, "incident") {
    v.required("id", m.id);
    v.required("opened", m.opened);
    v.optional("closed", m.closed);
    v.required("subject", m.subject);
    v.required("title", m.title);
    v.optional("findings", m.findings);
    v.optional("actions", m.actions);
  }
};

struct StatusReply {
  std::uint64_t re = 0;
  std::string cluster;
  std::string version;
  Term term;
  std::int64_t leader_pid = 0;
  std::vector<ReplicaStatus> replicas;
  std::vector<NodeStatus> nodes;
  GatewayStatus gateway;
  std::vector<Incident> open_incidents;
  TROIKA_FIELDS(StatusReply, "status_reply") {
    v.required("re", m.re);
    v.required("cluster", m.cluster);
    v.required("version", m.version);
    v.required("term", m.term);
    v.optional("leader_pid", m.leader_pid);
    v.required("replicas", m.replicas);
    v.required("nodes", m.nodes);
    v.required("gateway", m.gateway);
    v.required("open_incidents", m.open_incidents);
  }
};

enum class Verb { Start, Stop, Restart, Drain, Failover };

// Change intention. Answered by CommandProgress (several) and one CommandDone; with no_wait, CommandDone at
// once. The command goes on when the operator goes away.
struct Command {
  Verb verb{};
  std::string replica;  // empty: all; failover: the replica to serve, empty: the other one
  bool no_wait = false;
  TROIKA_FIELDS(Command, "command") {
    v.required("verb", m.verb);
    v.optional("replica", m.replica);
    v.optional("no_wait", m.no_wait);
  }
};

struct CommandProgress {
  std::uint64_t re = 0;
  std::string text;  // "a: verifying, 30/46 files on spark-1"
  TROIKA_FIELDS(CommandProgress, "command_progress") {
    v.required("re", m.re);
    v.required("text", m.text);
  }
};

struct CommandDone {
  std::uint64_t re = 0;
  Verdict verdict{};
  std::string text;
  std::vector<Finding> findings;
  TROIKA_FIELDS(CommandDone, "command_done") {
    v.required("re", m.re);
    v.required("verdict", m.verdict);
    v.required("text", m.text);
    v.optional("findings", m.findings);
  }
};

// Prove the model on every node, now. Answered by AuditStatus (several) and one AuditReply. Ends when the
// operator goes away, unless another one waits for the same.
struct AuditRequest {
  bool deep = false;  // read every byte, also of files that did not change since their proof
  TROIKA_FIELDS(AuditRequest, "audit_request") { v.optional("deep", m.deep); }
};

struct AuditedNode {
  std::string node;
  bool answered = false;  // false: it is still at it
  Bytes done;             // read or remembered, of `total`
  Bytes total;
  std::uint32_t files_done = 0;
  std::uint32_t files_total = 0;
  Verdict verdict{};  // of what follows, once it has answered
  std::uint32_t files = 0;
  std::uint32_t shards = 0;
  std::uint32_t cached = 0;
  std::uint64_t tensors = 0;
  Bytes bytes;  // read
  double seconds = 0;
  TROIKA_FIELDS(AuditedNode, "audited_node") {
    v.required("node", m.node);
    v.required("answered", m.answered);
    v.optional("done", m.done);
    v.optional("total", m.total);
    v.optional("files_done", m.files_done);
    v.optional("files_total", m.files_total);
    v.optional("verdict", m.verdict);
    v.optional("files", m.files);
    v.optional("shards", m.shards);
    v.optional("cached", m.cached);
    v.optional("tensors", m.tensors);
    v.optional("bytes", m.bytes);
    v.optional("seconds", m.seconds);
  }
};

struct AuditStatus {
  std::uint64_t re = 0;
  std::vector<AuditedNode> nodes;
  TROIKA_FIELDS(AuditStatus, "audit_status") {
    v.required("re", m.re);
    v.required("nodes", m.nodes);
  }
};

struct AuditReply {
  std::uint64_t re = 0;
  std::string manifest_digest;
  std::vector<AuditedNode> nodes;
  std::vector<Finding> findings;  // of all nodes, worst first
  TROIKA_FIELDS(AuditReply, "audit_reply") {
    v.required("re", m.re);
    v.required("manifest_digest", m.manifest_digest);
    v.required("nodes", m.nodes);
    v.required("findings", m.findings);
  }
};

struct IncidentsRequest {
  std::string since;  // RFC 3339, empty: all
  bool open_only = false;
  std::uint32_t limit = 200;
  TROIKA_FIELDS(IncidentsRequest, "incidents_request") {
    v.optional("since", m.since);
    v.optional("open_only", m.open_only);
    v.optional("limit", m.limit);
  }
};

struct IncidentsReply {
  std::uint64_t re = 0;
  std::vector<Incident> incidents;  // oldest first
  TROIKA_FIELDS(IncidentsReply, "incidents_reply") {
    v.required("re", m.re);
    v.required("incidents", m.incidents);
  }
};

}  // namespace troika::protocol
