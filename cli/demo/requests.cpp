#include "cli/demo/requests.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace troika::demo {

using local::StreamOutcome;

local::HttpRequest completion(const std::string& model, const std::string& prompt, std::uint32_t max_tokens,
                              bool stream) {
  nlohmann::json body{{"model", model},           {"messages", {{{"role", "user"}, {"content", prompt}}}},
                      {"max_tokens", max_tokens}, {"temperature", 0},
                      {"ignore_eos", true},       {"stream", stream}};
  if (stream) body["stream_options"] = {{"include_usage", true}};
  return {"POST", "/v1/chat/completions", body.dump()};
}

Speed speed_of(const StreamOutcome& outcome) {
  Speed speed;
  const auto& answer = outcome.answer;
  if (!answer.first_at()) return speed;
  speed.ttft_s = std::chrono::duration<double>(*answer.first_at() - outcome.asked).count();
  const double rest_s = std::chrono::duration<double>(*answer.last_at() - *answer.first_at()).count();
  if (answer.tokens() > 1 && rest_s > 0)
    speed.tokens_per_s = static_cast<double>(answer.tokens() - 1) / rest_s;
  return speed;
}

std::string described(const StreamOutcome& outcome) {
  if (!outcome.reply) return outcome.trouble;
  const auto& answer = outcome.answer;
  std::string out = fmt::format("status {}, {} tokens", outcome.reply->status, answer.tokens());
  if (!outcome.refusal.empty()) out += ", body " + outcome.refusal.substr(0, 300);
  if (!answer.error_code().empty())
    out += fmt::format(", error event {} ({})", answer.error_code(), answer.error_message());
  out += answer.done() ? ", [DONE]" : ", no [DONE]";
  return out + (outcome.trouble.empty() ? "" : ", " + outcome.trouble);
}

Result<double> sample(std::string_view page, std::string_view name) {
  double sum = 0;
  bool found = false;
  while (!page.empty()) {
    const std::string_view line = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(line.size() + 1, page.size()));
    if (!line.starts_with(name) || line.size() <= name.size()) continue;
    if (line[name.size()] != ' ' && line[name.size()] != '{') continue;
    const std::size_t space = line.rfind(' ');
    double value = 0;
    const auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    if (error != std::errc{}) continue;
    sum += value;
    found = true;
  }
  if (!found) return Error{"find the counter", std::string(name), "it is not on the page"};
  return sum;
}

Result<double> stage_counter(const local::LocalCluster& cluster, const std::string& replica,
                             const std::string& name) {
  const std::string first = local::nodes_of(cluster.shape(), replica).front();
  TROIKA_TRY(page, local::http("127.0.0.1", cluster.ports().nodes.at(first).api, {"GET", "/metrics"}));
  return sample(page.body, name);
}

}  // namespace troika::demo
