// /etc/troika/agent.toml: one node's own facts. Nothing of it comes from the network.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/cluster.hpp"
#include "config/problem.hpp"
#include "vocabulary/units.hpp"

namespace troika::config {

// An engine that may run here. The leader names `kind`; everything else is this file's.
//   [[engine]]
//   kind = "native"
//   program = "/usr/lib/troika/troika-stage"
//   api = "127.0.0.1:30000"       # where a stage of rank 0 serves; loopback only
//   link = "10.0.1.1:30100"       # where the stage before this one connects
//   kv_budget = "8GiB"
//   arguments = []                # appended; never from the network
//   environment = { OMP_NUM_THREADS = "4" }
struct EngineProfile {
  EngineKind kind = EngineKind::Native;
  std::string program;
  Endpoint api{"127.0.0.1", 30000};
  Endpoint link;
  Bytes kv_budget;  // 0: the engine's own choice; else at least 1 MiB
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
};

struct AgentConfig {
  // [node]
  std::string cluster;
  std::string node;
  std::string state_dir = "/var/lib/troika/agent";
  std::string run_dir = "/run/troika/agent";
  std::string keeper = "/usr/lib/troika/troika-keeper";  // program
  // [leader]
  std::vector<Endpoint> leaders;  // addresses = ["host:port"]
  // [tls]
  std::string ca = "/etc/troika/pki/ca.crt";
  std::string certificate = "/etc/troika/pki/agent.crt";
  std::string key = "/etc/troika/pki/agent.key";
  // [relay]
  Endpoint relay_listen{"0.0.0.0", 7444};
  // What gateways are told; host empty: the listen address, which then is not every address of the machine.
  Endpoint relay_advertise;
  // [model]
  std::string model_path;
  Duration proof_max_age{};  // after which files that did not change are read again all the same; 0: never
  // [fabric]
  std::vector<std::string> interfaces;  // netdevs of the links, in order
  // [log]
  Bytes stage_log_limit{16u << 20};  // kept of each stage's output
  // [[engine]]
  std::vector<EngineProfile> engines;
};

Loaded<AgentConfig> load_agent(const std::string& path);
Loaded<AgentConfig> parse_agent(std::string_view toml, const std::string& path);

}  // namespace troika::config
