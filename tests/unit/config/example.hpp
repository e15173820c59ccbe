// Good files, every key of them on a line of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troika::config {

// The example of the manual, with all its nodes.
inline constexpr std::string_view kCluster = R"([cluster]
name = "lab"

[leader]
listen = "0.0.0.0:7443"          # agents and remote operators, mutual TLS
socket = "/run/troika/control.sock"
state_dir = "/var/lib/troika"
ca = "/etc/troika/pki/ca.crt"
certificate = "/etc/troika/pki/leader.crt"
key = "/etc/troika/pki/leader.key"

[election]
backend = "static"               # or "etcd", endpoints = [...], ttl = "3s"

[gateway]
listen = "0.0.0.0:8080"
metrics = "127.0.0.1:9464"

[model]
name = "deepseek-v4-flash"
path = "/srv/models/deepseek-v4-flash-nvfp4"
manifest = "/etc/troika/deepseek-v4-flash-nvfp4.manifest.json"
layers = 43

[engine]
kind = "sglang"                  # native, vllm, trtllm, llamacpp, external
context_length = 12288
chunked_prefill = 4096
decode_graph_batch = 4
memory_fraction = 0.50
max_running = 8

[admission]
rate = 0.10                      # requests a second, over any window
burst = 1
in_flight = 8
prompt_cap = 8192                # tokens
window = 12288                   # prompt + output
queue = 0                        # waiting requests; 0 refuses at once
queue_wait = "60s"               # with a queue: refused at entry if the wait would be longer

[fabric]
topology = "ring3"
link_gbps = { min = 184, expected = 190 }

[memory]
reserve = "16GiB"                # kept free beside the plan's need at launch
floor = "4GiB"                   # below: the stage is killed

[restart]
attempts = 1
window = "30m"

[failover]
mode = "active-standby"          # or "active-active"

[[node]]
name = "spark-1"                 # certificates carry it
[[node]]
name = "spark-2"
[[node]]
name = "spark-3"
[[node]]
name = "spark-4"
[[node]]
name = "spark-5"
[[node]]
name = "spark-6"

[[replica]]
name = "a"
layers = [14, 14, 15]
nodes = ["spark-1", "spark-2", "spark-3"]

[[replica]]
name = "b"
layers = [14, 14, 15]
nodes = ["spark-4", "spark-5", "spark-6"]
)";

inline constexpr std::string_view kAgent = R"([node]
cluster = "lab"
name = "spark-1"
state_dir = "/var/lib/troika/agent"
run_dir = "/run/troika/agent"
keeper = "/usr/lib/troika/troika-keeper"

[leader]
addresses = ["10.0.0.1:7443", "leader-2.lab:7443"]

[tls]
ca = "/etc/troika/pki/ca.crt"
certificate = "/etc/troika/pki/agent.crt"
key = "/etc/troika/pki/agent.key"

[relay]
listen = "0.0.0.0:7444"
advertise = "10.0.0.11:7444"

[model]
path = "/srv/models/deepseek-v4-flash-nvfp4"
proof_max_age = "720h"

[fabric]
interfaces = ["enp1s0f0np0", "enP2p1s0f0np0"]

[log]
stage_limit = "16MiB"

[[engine]]
kind = "native"
program = "/usr/lib/troika/troika-stage"
api = "127.0.0.1:30000"
link = "10.0.1.1:30100"
kv_budget = "8GiB"
arguments = ["--log", "plain"]
environment = { OMP_NUM_THREADS = "4" }

[[engine]]
kind = "sglang"
program = "/opt/sglang/bin/python3"
link = "10.0.1.1:30200"
)";

// A line "key = value" and where it stands.
struct Line {
  std::uint32_t number = 0;
  std::uint32_t section_number = 0;  // of its [header]
  std::string section;               // "replica[1]"
  std::string key;
  std::string text;
  std::string path() const { return section + "." + key; }
};

inline std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

inline std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text += line + "\n";
  return text;
}

inline std::vector<Line> fields_of(std::string_view text) {
  std::vector<Line> fields;
  std::vector<std::string> seen;  // headers of lists
  Line at;
  for (const std::string& line : split(text)) {
    ++at.number;
    if (line.starts_with("[[")) {
      const std::string name = line.substr(2, line.find(']') - 2);
      at.section = name + "[" + std::to_string(std::count(seen.begin(), seen.end(), name)) + "]";
      at.section_number = at.number;
      seen.push_back(name);
    } else if (line.starts_with("[")) {
      at.section = line.substr(1, line.find(']') - 1);
      at.section_number = at.number;
    } else if (const std::size_t equals = line.find(" = "); equals != std::string::npos) {
      at.key = line.substr(0, equals);
      at.text = line;
      fields.push_back(at);
    }
  }
  return fields;
}

// The file with one line changed.
inline std::string with_line(std::string_view text, std::uint32_t number, const std::string& line) {
  auto lines = split(text);
  lines[number - 1] = line;
  return join(lines);
}

// The file with every "from" line made "to"; "from" must be there.
inline std::string replaced(std::string_view text, const std::string& from, const std::string& to) {
  std::string out(text);
  const std::size_t at = out.find(from);
  if (at == std::string::npos) return "the test asks for a text that is not there";
  return out.replace(at, from.size(), to);
}

// One change to the good file, and the problem that it must give.
struct Wrong {
  std::string from;  // a text of the good file
  std::string to;
  std::string key;
  std::string value;
  std::string expected;  // a part of the message
};

}  // namespace troika::config
