// What a cluster on this machine looks like, where its files and ports are, and the configuration files that
// say so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/local/ports.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::local {

// Replicas a and b of as many stages as `layers` has entries, nodes n1, n2, ...: a's first.
struct Shape {
  std::string cluster = "demo";
  std::vector<std::uint32_t> layers{14, 14, 15};
  std::uint32_t replicas = 2;
  std::string model = "troika-small-v3";
  // [admission]
  std::string rate = "0.10";
  std::uint32_t burst = 1;
  std::uint32_t in_flight = 8;
  // [restart]
  std::uint32_t attempts = 1;
  // [[engine]] of every agent
  std::string stage_program;  // empty: troika-stage
  std::vector<std::string> stage_arguments;
  std::map<std::string, std::string> stage_environment;
  Bytes kv_budget{256u << 20};
};

std::uint32_t layers_of(const Shape& shape);
std::vector<std::string> replica_names(const Shape& shape);
std::vector<std::string> node_names(const Shape& shape);
std::vector<std::string> nodes_of(const Shape& shape, const std::string& replica);

// Everything is below `root`, an absolute path.
struct Layout {
  std::string root;

  // Keepers listen on sockets below the nodes' folders, and a socket's path has at most 107 bytes.
  static constexpr std::size_t kMaxRoot = 56;

  std::string lock() const { return root + "/owner.lock"; }
  std::string record() const { return root + "/demo.json"; }
  std::string model() const { return root + "/model"; }
  std::string manifest() const { return root + "/manifest.json"; }
  std::string pki() const { return root + "/pki"; }
  std::string logs() const { return root + "/logs"; }
  std::string log(const std::string& process) const { return logs() + "/" + process + ".log"; }
  std::string socket() const { return root + "/control.sock"; }
  std::string leader_state() const { return root + "/leader"; }
  std::string cluster_toml() const { return root + "/cluster.toml"; }
  std::string node(const std::string& name) const { return root + "/" + name; }
  std::string node_model(const std::string& name) const { return node(name) + "/model"; }
  std::string agent_toml(const std::string& name) const { return node(name) + "/agent.toml"; }
};

struct Ports {
  std::uint16_t leader = 0;
  std::uint16_t gateway = 0;
  std::uint16_t metrics = 0;
  struct Node {
    std::uint16_t relay = 0;
    std::uint16_t api = 0;
    std::uint16_t link = 0;
  };
  std::map<std::string, Node> nodes;
};
Ports ports_of(const Shape& shape, const PortBlock& block);

struct Programs {
  std::string troikad;
  std::string agent;
  std::string keeper;
  std::string stage;
};
// In `directory`; empty: beside this program, else where packages put them (/usr/bin, /usr/lib/troika). The
// error names the first that is missing.
Result<Programs> find_programs(const std::string& directory);

std::string cluster_toml(const Shape& shape, const Layout& layout, const Ports& ports);
std::string agent_toml(const Shape& shape, const Layout& layout, const Ports& ports, const Programs& programs,
                       const std::string& node);

}  // namespace troika::local
