#include "config/cluster.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "config/section.hpp"

namespace troika::config {
namespace {

using Kinds = std::vector<std::pair<std::string_view, EngineKind>>;
const Kinds kEngineKinds{{"native", EngineKind::Native},     {"sglang", EngineKind::Sglang},
                         {"vllm", EngineKind::Vllm},         {"trtllm", EngineKind::Trtllm},
                         {"llamacpp", EngineKind::Llamacpp}, {"external", EngineKind::External}};

// Above any model and machine of today; they catch a slip of the pen.
constexpr std::int64_t kMostTokens = 16'777'216;
constexpr std::int64_t kMostLayers = 1024;
constexpr std::int64_t kMostRequests = 65'536;
constexpr double kMostRate = 10'000;  // a second
constexpr double kLeastRate = 1e-5;   // about one request a day
constexpr Duration kMostQueueWait = std::chrono::hours{24};
constexpr Duration kMostRestartWindow = std::chrono::hours{24 * 365};
constexpr double kMostGbps = 10'000;
constexpr std::size_t kMostReplicas = 64;
constexpr std::size_t kMostNodes = 256;
constexpr std::size_t kLongestSocketPath = 107;  // of the kernel's sockaddr_un

// How many ranks a cabling of the fabric joins; 0: any number.
struct Topology {
  std::string_view name;
  std::size_t ranks;
};
constexpr Topology kTopologies[] = {{"pair", 2}, {"ring3", 3}, {"ring4", 4}, {"line", 0}, {"switch", 0}};

std::string figure(std::string_view key, std::uint64_t value) {
  return std::string(key) + " = " + std::to_string(value);
}

std::string another_than(std::string_view key, const Endpoint& taken) {
  return "another port is expected; " + std::string(key) + " = " + text(taken) + " has this one";
}

void read_leader(Section section, LeaderConfig& out) {
  section.endpoint("listen", out.listen, Need::Optional);
  section.path("socket", out.socket, Need::Optional);
  if (section.good("socket") && out.socket.size() > kLongestSocketPath)
    section.add("socket",
                "at most " + std::to_string(kLongestSocketPath) + " bytes are allowed for a socket's path");
  section.path("state_dir", out.state_dir, Need::Optional);
  section.path("ca", out.ca, Need::Optional);
  section.path("certificate", out.certificate, Need::Optional);
  section.path("key", out.key, Need::Optional);
  section.finish();
}

void read_election(Section section) {
  std::string backend = "static";
  section.text("backend", backend, Need::Optional);
  if (section.good("backend") && backend != "static")
    section.add("backend", backend == "etcd"
                               ? "\"static\" is expected: this version has no \"etcd\" backend yet"
                               : "\"static\" is expected");
  section.refuse("endpoints", "only backend = \"etcd\" has endpoints, and this version does not have it yet");
  section.refuse("ttl", "only backend = \"etcd\" has a ttl, and this version does not have it yet");
  section.finish();
}

void read_gateway(Section section, Section& leader, const LeaderConfig& leader_config, GatewayConfig& out) {
  section.endpoint("listen", out.listen, Need::Optional);
  section.endpoint("metrics", out.metrics, Need::Optional);
  relate(section, "metrics", section, "listen", !collide(out.metrics, out.listen),
         another_than("gateway.listen", out.listen), another_than("gateway.metrics", out.metrics));
  relate(section, "listen", leader, "listen", !collide(out.listen, leader_config.listen),
         another_than("leader.listen", leader_config.listen), another_than("gateway.listen", out.listen));
  relate(section, "metrics", leader, "listen", !collide(out.metrics, leader_config.listen),
         another_than("leader.listen", leader_config.listen), another_than("gateway.metrics", out.metrics));
  section.finish();
}

void read_model(Section section, EngineKind kind, ModelConfig& out) {
  // An external engine has its model to itself.
  const Need files = kind == EngineKind::External ? Need::Optional : Need::Required;
  section.model_name("name", out.name, Need::Required);
  section.path("path", out.path, files);
  section.path("manifest", out.manifest, files);
  section.integer("layers", out.layers, {1, kMostLayers});
  section.finish();
}

void read_engine(Section& section, EngineConfig& out) {
  section.choice<EngineKind>("kind", out.kind, kEngineKinds, Need::Optional);
  section.tokens("context_length", out.context_length, {1, kMostTokens});
  section.tokens("chunked_prefill", out.chunked_prefill, {1, kMostTokens});
  section.integer("decode_graph_batch", out.decode_graph_batch, {1, kMostRequests});
  section.number("memory_fraction", out.memory_fraction, {0, 1});
  section.integer("max_running", out.max_running, {1, kMostRequests});
  relate(section, "chunked_prefill", section, "context_length", out.chunked_prefill <= out.context_length,
         "at most " + figure("engine.context_length", out.context_length.count) + " is expected",
         "at least " + figure("engine.chunked_prefill", out.chunked_prefill.count) + " is expected");
  section.finish();
}

void read_admission(Section section, Section& engine, const EngineConfig& engine_config,
                    AdmissionConfig& out) {
  section.number("rate", out.rate, {0, kMostRate, kLeastRate});
  section.integer("burst", out.burst, {1, kMostRequests});
  section.integer("in_flight", out.in_flight, {1, kMostRequests});
  section.tokens("prompt_cap", out.prompt_cap, {1, kMostTokens});
  section.tokens("window", out.window, {1, kMostTokens});
  section.integer("queue", out.queue, {0, kMostRequests});
  section.duration("queue_wait", out.queue_wait, {std::chrono::milliseconds{1}, kMostQueueWait});
  relate(section, "prompt_cap", section, "window", out.prompt_cap <= out.window,
         "at most " + figure("admission.window", out.window.count) + " is expected",
         "at least " + figure("admission.prompt_cap", out.prompt_cap.count) + " is expected");
  relate(section, "window", engine, "context_length", out.window <= engine_config.context_length,
         "at most " + figure("engine.context_length", engine_config.context_length.count) + " is expected",
         "at least " + figure("admission.window", out.window.count) + " is expected");
  section.finish();
}

void read_fabric(Section& section, FabricConfig& out) {
  std::vector<std::pair<std::string_view, std::string>> names;
  for (const Topology& topology : kTopologies)
    names.emplace_back(topology.name, topology.name);
  section.choice<std::string>("topology", out.topology, names, Need::Optional);
  Section gbps = section.table("link_gbps");
  gbps.number("min", out.link_gbps_min, {0, kMostGbps});
  gbps.number("expected", out.link_gbps_expected, {0, kMostGbps});
  relate(gbps, "min", gbps, "expected", out.link_gbps_min <= out.link_gbps_expected,
         "at most fabric.link_gbps.expected is expected", "at least fabric.link_gbps.min is expected");
  gbps.finish();
  section.finish();
}

void read_memory(Section section, MemoryConfig& out) {
  section.bytes("reserve", out.reserve, {});
  section.bytes("floor", out.floor, {});
  // At or above the reserve, a stage would be killed for what its own launch was allowed to leave.
  relate(section, "floor", section, "reserve", out.floor.count == 0 || out.floor < out.reserve,
         "below memory.reserve (" + std::to_string(out.reserve.count) + " bytes) is expected",
         "above memory.floor (" + std::to_string(out.floor.count) + " bytes) is expected");
  section.finish();
}

void read_restart(Section section, RestartConfig& out) {
  constexpr std::int64_t kMostAttempts = 10;
  section.integer("attempts", out.attempts, {0, kMostAttempts});
  section.duration("window", out.window, {std::chrono::seconds{1}, kMostRestartWindow});
  section.finish();
}

void read_failover(Section section, FailoverMode& out) {
  section.choice<FailoverMode>(
      "mode", out,
      {{"active-standby", FailoverMode::ActiveStandby}, {"active-active", FailoverMode::ActiveActive}},
      Need::Optional);
  section.finish();
}

// Names of [[node]] or [[replica]] that came before, with the place of each.
using Seen = std::map<std::string, std::string>;

void check_unique(Section& section, const std::string& name, Seen& seen) {
  if (name.empty()) return;
  const auto [first, fresh] = seen.emplace(name, section.path_of("name"));
  if (!fresh) section.add("name", "a name of its own is expected; " + first->second + " has this one");
}

void read_nodes(Section& root, EngineKind kind, std::vector<NodeConfig>& out) {
  Seen seen;
  auto sections = root.tables("node");
  if (sections.empty() && root.good("node") && kind != EngineKind::External)
    root.missing("node", "at least one [[node]] is expected");
  if (sections.size() > kMostNodes)
    root.add("node", "at most " + std::to_string(kMostNodes) + " are allowed");
  for (Section& section : sections) {
    NodeConfig node;
    section.name("name", node.name, Need::Required);
    check_unique(section, node.name, seen);
    section.finish();
    out.push_back(std::move(node));
  }
}

void check_layers(Section& section, const ReplicaConfig& replica, std::uint32_t model_layers,
                  bool model_good) {
  if (!section.good("layers") || replica.layers.empty()) return;
  const auto sum = std::accumulate(replica.layers.begin(), replica.layers.end(), std::uint64_t{0});
  if (model_good && sum != model_layers)
    section.add("layers",
                "layers that add up to " + figure("model.layers", model_layers) +
                    " are expected; they add up to " + std::to_string(sum),
                "PARTITION_MISMATCH");
  else if (section.good("nodes") && replica.layers.size() != replica.nodes.size())
    section.add("layers",
                "one number for each of the " + std::to_string(replica.nodes.size()) +
                    " nodes is expected; there are " + std::to_string(replica.layers.size()),
                "PARTITION_MISMATCH");
}

// Each node runs one stage of one replica: two would share its memory, and one fault would take both.
void check_placement(Section& section, const ReplicaConfig& replica, const std::vector<NodeConfig>& nodes,
                     Seen& taken) {
  for (std::size_t i = 0; i < replica.nodes.size(); ++i) {
    const std::string& node = replica.nodes[i];
    const bool known =
        std::any_of(nodes.begin(), nodes.end(), [&](const NodeConfig& n) { return n.name == node; });
    const std::string place = section.path_of("nodes") + "[" + std::to_string(i) + "]";
    const auto [first, fresh] = taken.emplace(node, place);
    if (!known)
      section.add_item("nodes", i, "the name of a [[node]] is expected");
    else if (!fresh)
      section.add_item("nodes", i,
                       "a node that has no stage yet is expected; " + first->second + " is there");
  }
}

void check_topology(Section& section, const ReplicaConfig& replica, Section& fabric,
                    const std::string& topology) {
  if (!fabric.has("topology") || !fabric.good("topology") || !section.good("nodes")) return;
  for (const Topology& one : kTopologies)
    if (one.name == topology && one.ranks != 0 && one.ranks != replica.nodes.size())
      section.add("nodes", std::to_string(one.ranks) + " nodes are expected with fabric.topology = \"" +
                               topology + "\"");
}

void check_url(Section& section, const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  if (url.empty()) return;
  if (!url.starts_with(kScheme) || !parse_endpoint(std::string_view(url).substr(kScheme.size())).ok())
    section.add("url", "http://host:port is expected");
}

struct ReplicaRules {
  const ClusterConfig& config;  // read so far
  bool layers_good;
  Section& fabric;
};

ReplicaConfig read_replica(Section& section, const ReplicaRules& rules, Seen& names, Seen& taken) {
  ReplicaConfig replica;
  section.name("name", replica.name, Need::Required);
  check_unique(section, replica.name, names);
  if (rules.config.engine.kind == EngineKind::External) {
    section.text("url", replica.url, Need::Required);
    check_url(section, replica.url);
    section.refuse("layers", "engine.kind = \"external\" has url in place of layers");
    section.refuse("nodes", "engine.kind = \"external\" has url in place of nodes");
  } else {
    section.refuse("url", "only engine.kind = \"external\" has a url");
    section.integers("layers", replica.layers, {1, kMostLayers});
    section.texts("nodes", replica.nodes, Need::Required);
    if (section.good("nodes") && replica.nodes.empty()) section.add("nodes", "at least one node is expected");
    check_layers(section, replica, rules.config.model.layers, rules.layers_good);
    check_placement(section, replica, rules.config.nodes, taken);
    check_topology(section, replica, rules.fabric, rules.config.fabric.topology);
  }
  section.finish();
  return replica;
}

void read_replicas(Section& root, const ReplicaRules& rules, std::vector<ReplicaConfig>& out) {
  Seen names, taken;
  auto sections = root.tables("replica");
  if (sections.empty() && root.good("replica"))
    root.missing("replica", "at least one [[replica]] is expected");
  if (sections.size() > kMostReplicas)
    root.add("replica", "at most " + std::to_string(kMostReplicas) + " are allowed");
  for (Section& section : sections)
    out.push_back(read_replica(section, rules, names, taken));
}

// SGLang with pipelines and chunked prefill hangs when a micro-batch has room for one request only.
void check_micro_batch(Section& engine, const ClusterConfig& config) {
  if (config.engine.kind != EngineKind::Sglang || !engine.good("max_running")) return;
  std::size_t ranks = 0;
  for (const ReplicaConfig& replica : config.replicas)
    ranks = std::max(ranks, replica.nodes.size());
  if (ranks < 2 || config.engine.max_running / ranks > 1) return;
  engine.add("max_running",
             "at least " + std::to_string(2 * ranks) + " is expected with " + std::to_string(ranks) +
                 " ranks and sglang, so that max_running / ranks is above 1",
             "MICRO_BATCH_ONE");
}

}  // namespace

std::string_view name(EngineKind kind) {
  for (const auto& [word, value] : kEngineKinds)
    if (value == kind) return word;
  broken_invariant("engine kind", __FILE__, __LINE__);
}

Loaded<ClusterConfig> parse_cluster(std::string_view toml, const std::string& path) {
  Document document(toml, path);
  if (!document.parsed()) return {std::nullopt, document.problems()};
  ClusterConfig config;
  Section root(document, &document.root(), "");
  Section cluster = root.table("cluster");
  cluster.name("name", config.cluster, Need::Required);
  cluster.finish();
  Section leader = root.table("leader");
  read_leader(leader, config.leader);
  read_election(root.table("election"));
  read_gateway(root.table("gateway"), leader, config.leader, config.gateway);
  Section engine = root.table("engine");
  read_engine(engine, config.engine);
  Section model = root.table("model");
  read_model(model, config.engine.kind, config.model);
  read_admission(root.table("admission"), engine, config.engine, config.admission);
  Section fabric = root.table("fabric");
  read_fabric(fabric, config.fabric);
  read_memory(root.table("memory"), config.memory);
  read_restart(root.table("restart"), config.restart);
  read_failover(root.table("failover"), config.failover);
  read_nodes(root, config.engine.kind, config.nodes);
  read_replicas(root, ReplicaRules{config, model.good("layers"), fabric}, config.replicas);
  check_micro_batch(engine, config);
  root.finish();
  auto problems = document.problems();
  if (!problems.empty()) return {std::nullopt, std::move(problems)};
  return {std::move(config), {}};
}

Loaded<ClusterConfig> load_cluster(const std::string& path) {
  auto text = Document::read(path);
  if (!text.config) return {std::nullopt, std::move(text.problems)};
  return parse_cluster(*text.config, path);
}

}  // namespace troika::config
