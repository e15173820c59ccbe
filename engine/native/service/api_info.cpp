#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/native/service/http_server.hpp"

namespace troika::native {

using json = nlohmann::ordered_json;

std::string metrics_text(const Engine& engine) {
  const auto& counters = engine.counters();
  const auto& scheduler = engine.scheduler();
  std::string out;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       std::uint64_t value) {
    out += fmt::format("# HELP troika_stage_{0} {1}\n# TYPE troika_stage_{0} {2}\ntroika_stage_{0} {3}\n",
                       name, help, type, value);
  };
  add("prompt_tokens_total", "counter", "Prompt tokens of requests taken in.", counters.prompt_tokens);
  add("generation_tokens_total", "counter", "Tokens generated.", counters.generation_tokens);
  add("requests_total", "counter", "Requests taken in.", counters.requests);
  add("requests_aborted_total", "counter", "Requests whose client went away.", counters.aborted);
  add("requests_running", "gauge", "Sequences in the pipeline.", scheduler.running());
  add("requests_waiting", "gauge", "Sequences not yet begun.", scheduler.waiting());
  add("kv_tokens_used", "gauge", "Tokens of KV cache set aside for running sequences.",
      scheduler.kv_reserved());
  add("kv_tokens_capacity", "gauge", "Tokens of KV cache, the least of all ranks.", scheduler.kv_capacity());
  return out;
}

std::string server_info_body(const ApiInfo& info) {
  return json{{"version", TROIKA_VERSION},
              {"model", info.model},
              {"replica", info.replica},
              {"epoch", info.epoch},
              {"context_length", info.context_length},
              {"chunked_prefill_size", info.chunked_prefill},
              {"max_running_requests", info.max_running},
              {"pp_size", info.layer_counts.size()},
              {"pp_layer_partition", info.layer_counts},
              {"max_total_num_tokens", info.kv_tokens}}
      .dump();
}

std::string models_body(const ApiInfo& info) {
  const json model = {{"id", info.model},     {"object", "model"},  {"created", info.started},
                      {"owned_by", "troika"}, {"root", info.model}, {"max_model_len", info.context_length}};
  return json{{"object", "list"}, {"data", json::array({model})}}.dump();
}

}  // namespace troika::native
