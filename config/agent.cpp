#include "config/agent.hpp"

#include <algorithm>

#include "config/section.hpp"

namespace troika::config {
namespace {

// Of the engines that an agent starts; an external one is nobody's to start.
const std::vector<std::pair<std::string_view, EngineKind>> kStartable{{"native", EngineKind::Native},
                                                                      {"sglang", EngineKind::Sglang},
                                                                      {"vllm", EngineKind::Vllm},
                                                                      {"trtllm", EngineKind::Trtllm},
                                                                      {"llamacpp", EngineKind::Llamacpp}};

constexpr Bytes kLeastLog{64u << 10};
constexpr Bytes kMostLog{16ull << 30};  // of each stage, and the last eight are kept
// One token's keys and values take some KiB a layer: below this no request could run.
constexpr Bytes kLeastKvBudget{1u << 20};

constexpr Duration kMostProofAge = std::chrono::hours{24 * 365};

bool is_loopback(const std::string& host) {
  // Not the name 127.0.0.1.example.org.
  const bool digits = host.find_first_not_of("0123456789.") == std::string::npos;
  return (host.starts_with("127.") && digits) || host == "::1" || host == "localhost";
}

void read_node(Section section, AgentConfig& out) {
  section.name("cluster", out.cluster, Need::Required);
  section.name("name", out.node, Need::Required);
  section.path("state_dir", out.state_dir, Need::Optional);
  section.path("run_dir", out.run_dir, Need::Optional);
  section.path("keeper", out.keeper, Need::Optional);
  relate(section, "run_dir", section, "state_dir", out.run_dir != out.state_dir,
         "another folder than node.state_dir is expected", "another folder than node.run_dir is expected");
  section.finish();
}

void read_leaders(Section section, std::vector<Endpoint>& out) {
  std::vector<std::string> addresses;
  section.texts("addresses", addresses, Need::Required);
  if (section.good("addresses") && addresses.empty())
    section.add("addresses", "at least one host:port is expected");
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto endpoint = parse_endpoint(addresses[i]);
    if (!endpoint.ok())
      section.add_item("addresses", i, endpoint.error().reason);
    else if (is_wildcard(endpoint->host))
      section.add_item("addresses", i, "the address of one machine is expected");
    else if (std::find(out.begin(), out.end(), *endpoint) != out.end())
      section.add_item("addresses", i, "an address of its own is expected; it is in the list already");
    else
      out.push_back(*endpoint);
  }
  section.finish();
}

void read_tls(Section section, AgentConfig& out) {
  section.path("ca", out.ca, Need::Optional);
  section.path("certificate", out.certificate, Need::Optional);
  section.path("key", out.key, Need::Optional);
  section.finish();
}

void read_relay(Section& section, AgentConfig& out) {
  section.endpoint("listen", out.relay_listen, Need::Optional);
  section.endpoint("advertise", out.relay_advertise, Need::Optional);
  if (section.good("advertise") && is_wildcard(out.relay_advertise.host))
    section.add("advertise", "the address where gateways reach this node is expected");
  if (!section.has("advertise") && section.good("listen") && is_wildcard(out.relay_listen.host))
    section.missing("advertise",
                    "the address where gateways reach this node is expected, as relay.listen = " +
                        text(out.relay_listen) + " is none");
  section.finish();
}

bool good_interface(const std::string& name) {
  constexpr std::size_t kLongest = 15;  // IFNAMSIZ without its end
  return !name.empty() && name.size() <= kLongest && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c != '/' && c != ':' && c != 0x7F; });
}

void read_fabric(Section section, std::vector<std::string>& out) {
  section.texts("interfaces", out, Need::Optional);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!good_interface(out[i]))
      section.add_item("interfaces", i, "the name of a network interface is expected, at most 15 characters");
    else if (std::find(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(i), out[i]) !=
             out.begin() + static_cast<std::ptrdiff_t>(i))
      section.add_item("interfaces", i, "each interface once is expected");
  }
  section.finish();
}

bool good_variable(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void read_environment(Section section, std::map<std::string, std::string>& out) {
  if (!section.exists()) return;
  for (const auto& [key, value] : *section.raw()) {
    const std::string variable(key.str());
    const auto text = value.value_exact<std::string>();
    // Engines read an empty variable as a value, and fall over it.
    if (text && text->empty())
      section.refuse(variable, "a value is expected; leave the variable out to have it unset", "ENV_EMPTY");
    else if (!good_variable(variable))
      section.refuse(variable, "a variable's name of letters, digits and _ is expected");
    else
      section.text(variable, out[variable], Need::Required);
  }
}

EngineProfile read_engine(Section& section, Section& relay, const Endpoint& relay_listen) {
  EngineProfile profile;
  section.choice<EngineKind>("kind", profile.kind, kStartable, Need::Required);
  section.path("program", profile.program, Need::Required);
  section.endpoint("api", profile.api, Need::Optional);
  if (section.good("api") && !is_loopback(profile.api.host))
    section.add(
        "api", "a loopback address is expected, such as \"127.0.0.1:30000\": engines have no access control");
  section.endpoint("link", profile.link, Need::Required);
  if (section.good("link") && is_wildcard(profile.link.host))
    section.add("link", "the address where the stage before this one connects is expected");
  relate(section, "link", section, "api", !collide(profile.link, profile.api),
         "another address than api is expected", "another address than link is expected");
  const auto beside_relay = [&](std::string_view key, const Endpoint& own) {
    relate(
        section, key, relay, "listen", !collide(own, relay_listen),
        "another port is expected; relay.listen = " + text(relay_listen) + " has this one",
        "another port is expected; the engine's " + std::string(key) + " = " + text(own) + " has this one");
  };
  beside_relay("api", profile.api);
  beside_relay("link", profile.link);
  section.bytes("kv_budget", profile.kv_budget, {kLeastKvBudget, kMostBytes, true});
  section.texts("arguments", profile.arguments, Need::Optional);
  read_environment(section.table("environment"), profile.environment);
  section.finish();
  return profile;
}

void read_engines(Section& root, Section& relay, const Endpoint& relay_listen,
                  std::vector<EngineProfile>& out) {
  auto sections = root.tables("engine");
  if (sections.empty() && root.good("engine")) root.missing("engine", "at least one [[engine]] is expected");
  for (Section& section : sections) {
    EngineProfile profile = read_engine(section, relay, relay_listen);
    const bool again =
        std::any_of(out.begin(), out.end(), [&](const auto& other) { return other.kind == profile.kind; });
    if (again && section.has("kind") && section.good("kind"))
      section.add("kind", "one [[engine]] of each kind is expected");
    out.push_back(std::move(profile));
  }
}

}  // namespace

Loaded<AgentConfig> parse_agent(std::string_view toml, const std::string& path) {
  Document document(toml, path);
  if (!document.parsed()) return {std::nullopt, document.problems()};
  AgentConfig config;
  Section root(document, &document.root(), "");
  read_node(root.table("node"), config);
  read_leaders(root.table("leader"), config.leaders);
  read_tls(root.table("tls"), config);
  Section relay = root.table("relay");
  read_relay(relay, config);
  Section model = root.table("model");
  model.path("path", config.model_path, Need::Required);
  model.duration("proof_max_age", config.proof_max_age, {Duration{}, kMostProofAge});
  model.finish();
  read_fabric(root.table("fabric"), config.interfaces);
  Section log = root.table("log");
  log.bytes("stage_limit", config.stage_log_limit, {kLeastLog, kMostLog});
  log.finish();
  read_engines(root, relay, config.relay_listen, config.engines);
  root.finish();
  auto problems = document.problems();
  if (!problems.empty()) return {std::nullopt, std::move(problems)};
  return {std::move(config), {}};
}

Loaded<AgentConfig> load_agent(const std::string& path) {
  auto text = Document::read(path);
  if (!text.config) return {std::nullopt, std::move(text.problems)};
  return parse_agent(*text.config, path);
}

}  // namespace troika::config
