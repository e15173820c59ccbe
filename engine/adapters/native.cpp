#include "engine/adapters/native.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace troika::adapters {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kGeneratedTokens = "troika_stage_generation_tokens_total";

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

std::uint64_t whole(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::string word(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

class Native final : public EngineAdapter {
 public:
  std::string_view kind() const override { return "native"; }

  Result<CommandLine> render(const StagePlan& plan, const LocalFacts& local) const override {
    TROIKA_CHECK(check_plan(plan));
    const LayerRange layers = layers_of(plan);
    CommandLine line;
    line.argv = {local.program,
                 "--model",
                 local.model_path,
                 "--replica",
                 plan.stage.replica,
                 "--rank",
                 number(plan.stage.rank.count),
                 "--ranks",
                 number(plan.layers.size()),
                 "--epoch",
                 number(plan.epoch.count),
                 "--layers",
                 number(layers.begin) + ":" + number(layers.end),
                 "--cluster",
                 local.cluster,
                 "--served-model-name",
                 plan.model,
                 "--context-length",
                 number(plan.context_length.count),
                 "--chunked-prefill",
                 number(plan.chunked_prefill.count),
                 "--max-running",
                 number(plan.max_running)};
    const auto add = [&](const char* option, const std::string& value) {
      line.argv.emplace_back(option);
      line.argv.push_back(value);
    };
    if (plan.layers.size() > 1) {
      add("--link-listen", local.link);
      add("--link-next", plan.next_link);
      add("--link-key-file", local.link_key_file);
    }
    if (plan.stage.rank.count == 0) add("--api", local.api);
    if (local.kv_budget.count != 0) add("--kv-budget-bytes", number(local.kv_budget.count));
    line.argv.insert(line.argv.end(), local.arguments.begin(), local.arguments.end());
    line.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"};
    for (const auto& [name, value] : local.environment)
      line.environment.push_back(name + "=" + value);
    return line;
  }

  LogReading read_log_line(const StagePlan& plan, std::string_view line) const override {
    // Lines of the stage itself; what its libraries print has no such prefix, and another epoch's lines say
    // nothing here.
    const std::string prefix = "troika-stage[" + text(plan.stage) + " e" + number(plan.epoch.count) + "]: ";
    const std::size_t at = line.find(prefix);
    if (at == std::string_view::npos) return {};
    const std::string_view words = line.substr(at + prefix.size());
    LogReading reading;
    reading.text = std::string(words);
    if (words.substr(0, 8) == "loading ") {
      const std::size_t slash = words.find('/');
      const std::string_view done = words.substr(8, slash == std::string_view::npos ? 0 : slash - 8);
      const std::string_view total =
          slash == std::string_view::npos ? std::string_view{} : words.substr(slash + 1);
      const auto a = std::from_chars(done.data(), done.data() + done.size(), reading.done.count);
      const auto b = std::from_chars(total.data(), total.data() + total.size(), reading.total.count);
      if (a.ec == std::errc{} && b.ec == std::errc{}) reading.kind = LogReading::Kind::Progress;
    } else if (words.substr(0, 6) == "ready ") {
      reading.kind = LogReading::Kind::Ready;
    } else if (words.substr(0, 8) == "failed: ") {
      reading.kind = LogReading::Kind::Failed;
      reading.text = std::string(words.substr(8));
      reading.follows = reading.text.rfind("lost the link ", 0) == 0;
    }
    return reading;
  }

  bool relays(std::string_view method, std::string_view path) const override {
    struct Allowed {
      std::string_view method, path;
    };
    constexpr std::array<Allowed, 3> kAllowed{
        {{"POST", "/v1/chat/completions"}, {"POST", "/v1/completions"}, {"GET", "/v1/models"}}};
    return std::any_of(kAllowed.begin(), kAllowed.end(),
                       [&](const Allowed& a) { return a.method == method && a.path == path; });
  }
  std::string_view completions_path() const override { return "/v1/completions"; }
  std::string_view settings_path() const override { return "/server_info"; }
  std::string_view metrics_path() const override { return "/metrics"; }

  Result<Settings> read_settings(std::string_view body) const override {
    const Json json = Json::parse(body.begin(), body.end(), nullptr, false);
    if (!json.is_object()) return Error{"read the engine's settings", "", "no JSON object"};
    Settings settings;
    settings.model = word(json, "model");
    settings.replica = word(json, "replica");
    settings.epoch.count = whole(json, "epoch");
    settings.context_length.count = whole(json, "context_length");
    settings.chunked_prefill.count = whole(json, "chunked_prefill_size");
    settings.max_running =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(whole(json, "max_running_requests"), UINT32_MAX));
    settings.kv_capacity.count = whole(json, "max_total_num_tokens");
    const auto layers = json.find("pp_layer_partition");
    if (layers != json.end() && layers->is_array()) {
      for (const Json& one : *layers)
        settings.layers.push_back(one.is_number_unsigned() ? one.get<std::uint32_t>() : 0);
    }
    return settings;
  }

  std::optional<std::uint64_t> generated_tokens(std::string_view metrics) const override {
    return counter_in(metrics, kGeneratedTokens);
  }
};

}  // namespace

const EngineAdapter& native_adapter() {
  static const Native adapter;
  return adapter;
}

}  // namespace troika::adapters
