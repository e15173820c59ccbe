// What Troika knows of an engine: its command line, its log lines, its API. Texts in, values out; nothing
// here starts or asks anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary/names.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::adapters {

// What the leader fixes. All of it comes from the network and is checked before it becomes a word of a
// command line.
struct StagePlan {
  StageId stage;
  Epoch epoch;
  std::string model;  // served name
  Tokens context_length;
  Tokens chunked_prefill;
  std::uint32_t max_running = 0;
  std::vector<std::uint32_t> layers;  // of each rank
  std::string next_link;              // host:port; empty with one rank
};

// What the agent adds of its own.
struct LocalFacts {
  std::string cluster;
  std::string program;
  std::string model_path;
  std::string api;   // host:port, of rank 0
  std::string link;  // host:port
  Bytes kv_budget;   // 0: the engine's own choice
  std::string link_key_file;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
};

struct CommandLine {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=VALUE"
};

// What one line of the engine's log says.
struct LogReading {
  enum class Kind { Nothing, Progress, Ready, Failed };
  Kind kind = Kind::Nothing;
  Bytes done;  // Progress: bytes of weights
  Bytes total;
  std::string text;      // the line without its prefix; Failed: the reason
  bool follows = false;  // Failed: because a neighbour was lost; the cause is elsewhere
};

// Settings in force, as the engine tells.
struct Settings {
  std::string model;
  std::string replica;  // empty: the engine does not know
  Epoch epoch;
  Tokens context_length;
  Tokens chunked_prefill;
  std::uint32_t max_running = 0;
  std::vector<std::uint32_t> layers;
  Tokens kv_capacity;
};

class EngineAdapter {
 public:
  virtual ~EngineAdapter() = default;
  virtual std::string_view kind() const = 0;

  // Errors name the figure or name that is not acceptable.
  virtual Result<CommandLine> render(const StagePlan& plan, const LocalFacts& local) const = 0;
  virtual LogReading read_log_line(const StagePlan& plan, std::string_view line) const = 0;

  // May a gateway's request be passed on to the engine? Everything else of its API stays on its machine.
  virtual bool relays(std::string_view method, std::string_view path) const = 0;
  virtual std::string_view completions_path() const = 0;
  virtual std::string_view settings_path() const = 0;
  virtual std::string_view metrics_path() const = 0;
  virtual Result<Settings> read_settings(std::string_view body) const = 0;
  // Tokens generated since the engine's start, out of its metrics.
  virtual std::optional<std::uint64_t> generated_tokens(std::string_view metrics) const = 0;
};

// By the kind's name in the configuration. Kinds that cannot be started yet are refused by name.
Result<const EngineAdapter*> adapter_for(std::string_view kind);

// ---- shared by adapters

// The plan's figures and names are of the form that any engine needs.
Status check_plan(const StagePlan& plan);
LayerRange layers_of(const StagePlan& plan);
// Value of a counter without labels, or the sum over its labels, in Prometheus text.
std::optional<std::uint64_t> counter_in(std::string_view metrics, std::string_view name);

}  // namespace troika::adapters
