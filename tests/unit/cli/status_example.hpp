// A cluster in the middle of trouble: replica a serves, b failed its verification, one of its nodes is gone.
#pragma once

#include "protocol/messages.hpp"

namespace troika::cli {

inline protocol::StageStatus stage(std::string id, std::string node, std::string state, std::uint64_t epoch,
                                   std::int64_t pid, LayerRange layers, std::uint64_t bytes) {
  protocol::StageStatus out;
  out.stage = std::move(id);
  out.node = std::move(node);
  out.state = std::move(state);
  out.epoch = Epoch{epoch};
  out.pid = pid;
  out.layers = layers;
  out.progress = out.progress_total = Bytes{bytes};
  return out;
}

inline protocol::NodeStatus node(std::string name, double age) {
  protocol::NodeStatus out;
  out.node = std::move(name);
  out.connected = true;
  out.version = "0.1.0";
  out.heartbeat_age_seconds = age;
  out.facts.memory_total = Bytes{24ull << 30};
  out.facts.memory_available = Bytes{20ull << 30};
  out.facts.psi_memory_some = 0.25;
  out.facts.links = {{"eth0", false, "up", 200000, {}}};
  return out;
}

inline protocol::StatusReply status_example() {
  protocol::StatusReply status;
  status.cluster = "lab";
  status.version = "0.1.0";
  status.term = Term{3};
  status.leader_pid = 1234;

  protocol::ReplicaStatus a;
  a.replica = "a";
  a.desired = "running";
  a.phase = "serving";
  a.epoch = Epoch{2};
  a.proven = a.routed = true;
  a.shards_proven = 92;
  a.phase_seconds = 190;
  a.stages = {stage("a/0", "n1", "ready", 2, 501, {0, 14}, 12u << 20),
              stage("a/1", "n2", "ready", 2, 502, {14, 29}, 13u << 20)};
  protocol::ReplicaStatus b;
  b.replica = "b";
  b.desired = "running";
  b.phase = "failed";
  b.epoch = Epoch{0};
  b.breaker_open = true;
  b.phase_seconds = 4;
  b.reason = "verification failed on n3";
  b.stages = {stage("b/0", "n3", "stopped", 0, 0, {0, 14}, 0),
              stage("b/1", "n4", "unknown", 0, 0, {14, 29}, 0)};
  b.findings = {finding(Code::HASH_MISMATCH, "n3", "model-00002.safetensors",
                        "SHA-256 differs from the manifest", "copy the file again")};
  status.replicas = {a, b};

  protocol::NodeStatus lost;
  lost.node = "n4";
  lost.heartbeat_age_seconds = 75;
  lost.facts.memory_total = Bytes{24ull << 30};  // of long ago: not shown
  protocol::NodeStatus busy = node("n3", 1.2);
  busy.verifying = {"b: 12/46 files"};
  busy.facts.links.clear();
  busy.facts.psi_memory_some = -1;
  status.nodes = {node("n1", 0.3), node("n2", 0.5), busy, lost};

  status.gateway.connected = true;
  status.gateway.pid = 77;
  status.gateway.listen = "127.0.0.1:8080";
  status.gateway.targets = {{"a", Epoch{2}, "127.0.0.1:7444", "n1", Tokens{0}}};
  status.gateway.stats.in_flight = 1;
  status.gateway.stats.admitted = 12;
  status.gateway.stats.refused = 3;
  status.gateway.stats.completed = 11;
  return status;
}

}  // namespace troika::cli
