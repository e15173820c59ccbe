#include "cli/local/shape.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <numeric>
#include <utility>

#include "cli/local/processes.hpp"

namespace troika::local {
namespace {

// Paths and names of ours hold nothing that TOML's basic strings escape but quotes and backslashes.
std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts)
    out += (out.empty() ? "" : ", ") + toml_text(text);
  return "[" + out + "]";
}

std::string list(const std::vector<std::uint32_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

struct Toml {
  std::string text;

  template <class... Parts>
  void line(fmt::format_string<Parts...> form, Parts&&... parts) {
    text += fmt::format(form, std::forward<Parts>(parts)...) + "\n";
  }
};

std::string endpoint(std::uint16_t port) {
  return fmt::format("\"127.0.0.1:{}\"", port);
}

bool executable(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0;
}

std::string own_directory() {
  char target[4096];
  const ssize_t length = ::readlink("/proc/self/exe", target, sizeof target);
  const std::string path(target, length > 0 ? static_cast<std::size_t>(length) : 0);
  return path.substr(0, path.rfind('/'));
}

}  // namespace

std::uint32_t layers_of(const Shape& shape) {
  return std::accumulate(shape.layers.begin(), shape.layers.end(), 0u);
}

std::vector<std::string> replica_names(const Shape& shape) {
  std::vector<std::string> out;
  for (std::uint32_t i = 0; i < shape.replicas; ++i)
    out.emplace_back(1, static_cast<char>('a' + i));
  return out;
}

std::vector<std::string> node_names(const Shape& shape) {
  std::vector<std::string> out;
  for (std::size_t i = 1; i <= shape.replicas * shape.layers.size(); ++i)
    out.push_back("n" + std::to_string(i));
  return out;
}

std::vector<std::string> nodes_of(const Shape& shape, const std::string& replica) {
  const std::vector<std::string> all = node_names(shape);
  const std::size_t first = static_cast<std::size_t>(replica.front() - 'a') * shape.layers.size();
  std::vector<std::string> out;
  for (std::size_t i = 0; i < shape.layers.size(); ++i)
    out.push_back(all.at(first + i));
  return out;
}

Ports ports_of(const Shape& shape, const PortBlock& block) {
  std::size_t next = 0;
  const auto take = [&] { return block.port(next++); };
  Ports ports;
  ports.leader = take();
  ports.gateway = take();
  ports.metrics = take();
  for (const std::string& node : node_names(shape)) {
    Ports::Node& one = ports.nodes[node];
    one.relay = take();
    one.api = take();
    one.link = take();
  }
  return ports;
}

Result<Programs> find_programs(const std::string& directory) {
  const std::string first = directory.empty() ? own_directory() : directory;
  std::vector<std::string> places{first};
  if (directory.empty()) places.insert(places.end(), {"/usr/bin", "/usr/lib/troika"});
  const auto find = [&](const std::string& name) -> Result<std::string> {
    for (const std::string& place : places)
      if (executable(place + "/" + name)) return place + "/" + name;
    return Error{"find the program", name, "it is not in " + fmt::format("{}", fmt::join(places, ", "))};
  };
  TROIKA_TRY(troikad, find("troikad"));
  TROIKA_TRY(agent, find("troika-agent"));
  TROIKA_TRY(keeper, find("troika-keeper"));
  TROIKA_TRY(stage, find("troika-stage"));
  return Programs{troikad, agent, keeper, stage};
}

std::string cluster_toml(const Shape& shape, const Layout& layout, const Ports& ports) {
  Toml out;
  out.line("[cluster]\nname = {}\n", toml_text(shape.cluster));
  out.line("[leader]\nlisten = {}\nsocket = {}\nstate_dir = {}", endpoint(ports.leader),
           toml_text(layout.socket()), toml_text(layout.leader_state()));
  out.line("ca = {}\ncertificate = {}\nkey = {}\n", toml_text(layout.pki() + "/ca.crt"),
           toml_text(layout.pki() + "/leader.crt"), toml_text(layout.pki() + "/leader.key"));
  out.line("[gateway]\nlisten = {}\nmetrics = {}\n", endpoint(ports.gateway), endpoint(ports.metrics));
  out.line("[model]\nname = {}\npath = {}\nmanifest = {}\nlayers = {}\n", toml_text(shape.model),
           toml_text(layout.model()), toml_text(layout.manifest()), layers_of(shape));
  out.line("[engine]\nkind = \"native\"\ncontext_length = 12288\nchunked_prefill = 4096\nmax_running = {}\n",
           shape.in_flight);
  out.line(
      "[admission]\nrate = {}\nburst = {}\nin_flight = {}\nprompt_cap = 8192\nwindow = 12288\nqueue = 0\n",
      shape.rate, shape.burst, shape.in_flight);
  out.line("[fabric]\ntopology = \"{}\"\n", shape.layers.size() == 3 ? "ring3" : "line");
  // Six small stages share this machine: the figures of a node with a 168 GB model would refuse them.
  out.line("[memory]\nreserve = \"256MiB\"\nfloor = \"64MiB\"\n");
  out.line("[restart]\nattempts = {}\nwindow = \"30m\"\n", shape.attempts);
  for (const std::string& node : node_names(shape))
    out.line("[[node]]\nname = {}\n", toml_text(node));
  for (const std::string& replica : replica_names(shape))
    out.line("[[replica]]\nname = {}\nlayers = {}\nnodes = {}\n", toml_text(replica), list(shape.layers),
             list(nodes_of(shape, replica)));
  return out.text;
}

std::string agent_toml(const Shape& shape, const Layout& layout, const Ports& ports, const Programs& programs,
                       const std::string& node) {
  const Ports::Node& own = ports.nodes.at(node);
  std::map<std::string, std::string> environment = shape.stage_environment;
  environment[kMark] = layout.root;
  std::string variables;
  for (const auto& [key, value] : environment)
    variables += fmt::format("{}{} = {}", variables.empty() ? "" : ", ", key, toml_text(value));
  Toml out;
  out.line("[node]\ncluster = {}\nname = {}", toml_text(shape.cluster), toml_text(node));
  out.line("state_dir = {}\nrun_dir = {}\nkeeper = {}\n", toml_text(layout.node(node) + "/state"),
           toml_text(layout.node(node) + "/run"), toml_text(programs.keeper));
  out.line("[leader]\naddresses = [{}]\n", endpoint(ports.leader));
  out.line("[tls]\nca = {}\ncertificate = {}\nkey = {}\n", toml_text(layout.pki() + "/ca.crt"),
           toml_text(layout.pki() + "/" + node + ".crt"), toml_text(layout.pki() + "/" + node + ".key"));
  out.line("[relay]\nlisten = {}\n", endpoint(own.relay));
  out.line("[model]\npath = {}\n", toml_text(layout.node_model(node)));
  out.line("[fabric]\ninterfaces = [\"lo\"]\n");
  out.line("[[engine]]\nkind = \"native\"\nprogram = {}",
           toml_text(shape.stage_program.empty() ? programs.stage : shape.stage_program));
  out.line("api = {}\nlink = {}\nkv_budget = \"{}MiB\"", endpoint(own.api), endpoint(own.link),
           shape.kv_budget.count >> 20);
  out.line("arguments = {}\nenvironment = {{ {} }}", list(shape.stage_arguments), variables);
  return out.text;
}

}  // namespace troika::local
