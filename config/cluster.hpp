// /etc/troika/cluster.toml: text -> plain structs. Every error names file, line, key, value and what is
// allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.hpp"
#include "vocabulary/names.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::config {

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};
std::string text(const Endpoint& endpoint);  // "host:port", IPv6 hosts in brackets
// Reads that form; a host is a name, an IPv4 or an IPv6 address; ports are 1 to 65535.
Result<Endpoint> parse_endpoint(std::string_view text);
bool is_wildcard(const std::string& host);  // every address of the machine: 0.0.0.0, ::
// Whether a program that listens on one keeps another from listening on the other: the same port, and hosts
// that are the same or of which one is every address of the machine.
bool collide(const Endpoint& a, const Endpoint& b);

struct LeaderConfig {
  Endpoint listen{"0.0.0.0", 7443};  // agents and remote operators, mutual TLS
  std::string socket = "/run/troika/control.sock";
  std::string state_dir = "/var/lib/troika";
  std::string ca = "/etc/troika/pki/ca.crt";
  std::string certificate = "/etc/troika/pki/leader.crt";
  std::string key = "/etc/troika/pki/leader.key";
};

struct GatewayConfig {
  Endpoint listen{"0.0.0.0", 8080};
  Endpoint metrics{"127.0.0.1", 9464};
};

struct ModelConfig {
  std::string name;
  std::string path;  // on this machine: tokenizer files for counting tokens; agents have paths of their own
  std::string manifest;       // file
  std::uint32_t layers = 43;  // of the model; the layers of every replica must add up to it
};

enum class EngineKind { Native, Sglang, Vllm, Trtllm, Llamacpp, External };
std::string_view name(EngineKind kind);

struct EngineConfig {
  EngineKind kind = EngineKind::Sglang;
  Tokens context_length{12288};
  Tokens chunked_prefill{4096};
  std::uint32_t decode_graph_batch = 4;
  double memory_fraction = 0.50;
  std::uint32_t max_running = 8;
};

struct AdmissionConfig {
  double rate = 0.10;
  std::uint32_t burst = 1;
  std::uint32_t in_flight = 8;
  Tokens prompt_cap{8192};
  Tokens window{12288};
  std::uint32_t queue = 0;
  Duration queue_wait = std::chrono::seconds{60};
};

struct FabricConfig {
  std::string topology = "ring3";  // pair, ring3, ring4, line, switch
  double link_gbps_min = 184;
  double link_gbps_expected = 190;
};

struct MemoryConfig {
  Bytes reserve{16ull << 30};
  Bytes floor{4ull << 30};
};

struct RestartConfig {
  std::uint32_t attempts = 1;
  Duration window = std::chrono::minutes{30};
};

enum class FailoverMode { ActiveStandby, ActiveActive };

struct NodeConfig {
  std::string name;
};

struct ReplicaConfig {
  std::string name;
  std::vector<std::uint32_t> layers;  // of each rank
  std::vector<std::string> nodes;     // of each rank
  std::string url;                    // engine.kind "external" only, in place of layers and nodes
};

struct ClusterConfig {
  std::string cluster;
  LeaderConfig leader;
  GatewayConfig gateway;
  ModelConfig model;
  EngineConfig engine;
  AdmissionConfig admission;
  FabricConfig fabric;
  MemoryConfig memory;
  RestartConfig restart;
  FailoverMode failover = FailoverMode::ActiveStandby;
  std::vector<NodeConfig> nodes;
  std::vector<ReplicaConfig> replicas;
};

// Reads and checks the whole file; on any problem the config is absent and every problem is listed.
Loaded<ClusterConfig> load_cluster(const std::string& path);
Loaded<ClusterConfig> parse_cluster(std::string_view toml, const std::string& path);

}  // namespace troika::config
