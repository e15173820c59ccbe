// The command line of troika-stage: the contract with the agent.
#pragma once

#include <optional>
#include <string>

#include "engine/native/config.hpp"
#include "engine/native/service/link.hpp"
#include "vocabulary/names.hpp"

namespace troika::native {

struct StageOptions {
  std::string model;  // directory
  std::string cluster = "local";
  std::string replica = "a";
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint64_t epoch = 1;
  std::optional<LayerRange> layers;  // all, with one rank
  std::optional<HostPort> link_listen;
  std::optional<HostPort> link_next;
  std::string link_key_file;
  std::optional<HostPort> api;
  std::uint32_t context_length = 0;  // 0: max_position_embeddings
  std::uint32_t chunked_prefill = 512;
  std::uint32_t max_running = 8;
  std::uint64_t kv_budget_bytes = 0;  // 0: enough for max_running * context_length, at most kDefaultKvBytes
  std::string served_model_name;      // empty: the model directory's last part
  std::uint32_t threads = 1;

  bool first() const { return rank == 0; }
  bool last() const { return rank + 1 == ranks; }
  std::uint32_t next_rank() const { return last() ? 0 : rank + 1; }
  std::uint32_t previous_rank() const { return first() ? ranks - 1 : rank - 1; }
};

// So that six stages of a demo fit a small machine; pages are touched only when used.
inline constexpr std::uint64_t kDefaultKvBytes = 256U << 20U;

struct ParsedOptions {
  std::optional<StageOptions> options;
  int exit_code =
      0;  // where there are none: 0 after --help or --version, 2 on wrong usage (already explained)
};

ParsedOptions parse_options(int argc, char** argv);

// Fills in what depends on the model. Error: the options do not fit it.
Status complete(StageOptions& options, const ModelConfig& config);

// Tokens that the stage's KV cache holds: whole pages.
std::uint64_t kv_tokens(const StageOptions& options, const ModelConfig& config);

}  // namespace troika::native
