#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/native/service/openai.hpp"
#include "engine/tokenizer/chat.hpp"
#include "engine/tokenizer/utf8.hpp"

namespace troika::native {
namespace {

using nlohmann::json;

constexpr std::uint32_t kDefaultCompletionTokens = 16;  // OpenAI's default for /v1/completions
constexpr std::size_t kMostStops = 16;
constexpr std::size_t kLongestStop = 1024;

ApiFault api_fault(std::string param, const std::string& reason) {
  ApiFault out;
  out.message = param.empty() ? reason : param + " " + reason;
  out.param = std::move(param);
  out.code = "invalid_request";
  return out;
}

// Reads fields and keeps the first fault.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}

  const json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  bool flag(const char* name) {
    const auto* value = find(name);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(name, "must be true or false");
    return *value == true;
  }
  std::optional<double> number(const char* name, double least, double most) {
    const auto* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most)) {
      fail(name, "must be a number from " + json(least).dump() + " to " + json(most).dump());
      return std::nullopt;
    }
    return value->get<double>();
  }
  std::optional<std::uint32_t> positive(const char* name) {
    const auto* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() == 0 ||
        value->get<std::uint64_t>() > 0x7fffffff) {
      fail(name, "must be a whole number above 0");
      return std::nullopt;
    }
    return value->get<std::uint32_t>();
  }
  void fail(std::string param, const std::string& reason) {
    if (!fault_) fault_ = api_fault(std::move(param), reason);
  }
  std::optional<ApiFault> take_fault() { return fault_; }

 private:
  const json& object_;
  std::optional<ApiFault> fault_;
};

// Silence about these would give an answer that the caller did not ask for.
void refuse_unsupported(Fields& fields, bool chat) {
  const auto only = [&](const char* name, const json& value) {
    const auto* found = fields.find(name);
    if (found != nullptr && *found != value)
      fields.fail(name, "is not supported other than as " + value.dump());
  };
  only("n", 1);
  only("best_of", 1);
  only("echo", false);
  only("suffix", "");
  only("logprobs", chat ? json(false) : json(0));
  only("top_logprobs", 0);
  only("presence_penalty", 0);
  only("frequency_penalty", 0);
  only("repetition_penalty", 1);
  only("logit_bias", json::object());
  only("tools", json::array());
  only("functions", json::array());
  only("response_format", json{{"type", "text"}});
  for (const char* name :
       {"regex", "ebnf", "json_schema", "structural_tag", "guided_json", "guided_regex", "top_k", "min_p"}) {
    if (fields.find(name) != nullptr) fields.fail(name, "is not supported");
  }
}

std::vector<std::string> read_stops(Fields& fields) {
  const auto* value = fields.find("stop");
  if (value == nullptr) return {};
  const json list = value->is_string() ? json::array({*value}) : *value;
  std::vector<std::string> stops;
  if (!list.is_array() || list.size() > kMostStops) {
    fields.fail("stop", "must be a string or a list of at most 16");
    return {};
  }
  for (const auto& stop : list) {
    if (!stop.is_string() || stop.get_ref<const std::string&>().empty() ||
        stop.get_ref<const std::string&>().size() > kLongestStop) {
      fields.fail("stop", "must hold strings of 1 to 1024 bytes");
      return {};
    }
    stops.push_back(stop.get<std::string>());
  }
  return stops;
}

Sampling read_sampling(Fields& fields, const ApiLimits& limits) {
  Sampling sampling;
  sampling.temperature = static_cast<float>(fields.number("temperature", 0, 2).value_or(1.0));
  const auto top_p = fields.number("top_p", 0, 1).value_or(1.0);
  if (top_p <= 0) fields.fail("top_p", "must be above 0");
  sampling.top_p = std::max(static_cast<float>(top_p), 1e-6F);
  sampling.seed = limits.random_seed;
  if (const auto* seed = fields.find("seed")) {
    if (!seed->is_number_integer())
      fields.fail("seed", "must be a whole number");
    else
      sampling.seed = seed->is_number_unsigned() ? seed->get<std::uint64_t>()
                                                 : static_cast<std::uint64_t>(seed->get<std::int64_t>());
  }
  return sampling;
}

std::optional<ApiFault> set_output(GenerationRequest& request, std::optional<std::uint32_t> asked, bool chat,
                                   const ApiLimits& limits) {
  const std::uint64_t prompt = request.prompt.size();
  // What one sequence can have at most, by the context and by the KV cache.
  const auto room = std::min<std::uint64_t>(limits.context_length, limits.kv_tokens);
  std::uint64_t output = asked.value_or(kDefaultCompletionTokens);
  if (!asked && (chat || prompt + output > room)) output = room > prompt ? room - prompt : 1;
  if (prompt + output > room) {
    auto out = api_fault(chat ? "messages" : "prompt", "");
    const bool by_context = limits.context_length <= limits.kv_tokens;
    out.message = "This model's maximum context length is " + std::to_string(room) + " tokens" +
                  (by_context ? "" : " (as much as its KV cache holds)") + ", but " +
                  std::to_string(prompt + output) + " tokens were asked for: " + std::to_string(prompt) +
                  " of prompt and " + std::to_string(output) + " of output.";
    out.code = "context_length_exceeded";
    return out;
  }
  request.max_tokens = static_cast<std::uint32_t>(output);
  return std::nullopt;
}

}  // namespace

std::variant<ApiRequest, ApiFault> parse_request(bool chat, std::string_view body,
                                                 const tokenizer::Tokenizer& tokenizer,
                                                 const ApiLimits& limits) {
  if (tokenizer::valid_prefix(body) != body.size()) return api_fault("", "the body is not UTF-8");
  json document = json::parse(body, nullptr, false);
  // The library takes a zero byte for the end of the body.
  if (body.find('\0') != std::string_view::npos || document.is_discarded())
    return api_fault("", "the body is not JSON");
  if (!document.is_object()) return api_fault("", "the body must be a JSON object");
  Fields fields(document);
  if (const auto* model = fields.find("model"); model != nullptr && !model->is_string()) {
    fields.fail("model", "must be a string");
  }
  ApiRequest request;
  request.chat = chat;
  request.stream = fields.flag("stream");
  if (const auto* options = fields.find("stream_options")) {
    if (!options->is_object())
      fields.fail("stream_options", "must be an object");
    else if (!options->value("include_usage", json(false)).is_boolean()) {
      fields.fail("stream_options.include_usage", "must be true or false");
    } else
      request.include_usage = options->value("include_usage", false);
  }
  refuse_unsupported(fields, chat);
  request.generation.sampling = read_sampling(fields, limits);
  request.generation.stop = read_stops(fields);
  request.generation.ignore_eos = fields.flag("ignore_eos");
  auto asked = fields.positive("max_tokens");
  if (chat) {
    if (const auto newer = fields.positive("max_completion_tokens")) asked = newer;
    if (fields.find("messages") == nullptr) fields.fail("messages", "is missing");
  } else {
    if (fields.find("prompt") == nullptr) fields.fail("prompt", "is missing");
    document.erase("messages");
  }
  if (const auto found = fields.take_fault()) return *found;
  auto prompt = tokenizer::prompt_of_request(tokenizer, document);
  if (!prompt.ok()) return api_fault(prompt.error().subject, prompt.error().reason);
  request.generation.prompt = std::move(*prompt);
  if (auto over = set_output(request.generation, asked, chat, limits)) return *over;
  return request;
}

}  // namespace troika::native
