#include "daemon/gateway/ask.hpp"

#include <array>
#include <utility>

namespace troika::daemon::gateway {
namespace {

using Json = nlohmann::json;

// Parsing recurses: a deeper document is hostile. Tool schemas of real clients stay far below.
constexpr int kMaxDepth = 64;

// No model writes so much; sums with it cannot overflow.
constexpr std::uint64_t kMostTokens = 1u << 30;

Objection invalid(std::string param, std::string message) {
  return {Trouble::InvalidRequest, std::move(message), std::move(param)};
}

const Json* present(const Json& request, const char* field) {
  const auto found = request.find(field);
  return found == request.end() || found->is_null() ? nullptr : &*found;
}

// Grammars make pipelines hang (mode 55): refused until a version of the engine proves otherwise.
Objection grammar(std::string field) {
  std::string message = "\"" + field +
                        "\" constrains the output by a grammar, which is unsafe with an engine split into "
                        "pipeline stages; leave it out";
  return {Trouble::UnsupportedByProfile, std::move(message), std::move(field)};
}

std::optional<Objection> check_response_format(const Json& request) {
  const auto* format = present(request, "response_format");
  if (format == nullptr) return std::nullopt;
  if (!format->is_object() || !format->contains("type") || !(*format)["type"].is_string())
    return invalid("response_format", "\"response_format\" must be an object with a \"type\"");
  if ((*format)["type"] != "text") return grammar("response_format");
  return std::nullopt;
}

std::optional<Objection> check_tools(const Json& request) {
  const auto* tools = present(request, "tools");
  if (tools == nullptr) return std::nullopt;
  if (!tools->is_array()) return invalid("tools", "\"tools\" must be a list");
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const auto& tool = (*tools)[i];
    const std::string at = "tools[" + std::to_string(i) + "]";
    if (!tool.is_object()) return invalid(at, "\"" + at + "\" must be an object");
    const auto* function = present(tool, "function");
    if (function == nullptr || !function->is_object()) continue;
    const auto* strict = present(*function, "strict");
    if (strict != nullptr && *strict != Json(false)) return grammar(at + ".function.strict");
  }
  return std::nullopt;
}

// A named tool or "required" is enforced by a grammar too.
std::optional<Objection> check_tool_choice(const Json& request) {
  const auto* choice = present(request, "tool_choice");
  if (choice == nullptr) return std::nullopt;
  if (choice->is_string() && (*choice == "auto" || *choice == "none")) return std::nullopt;
  return grammar("tool_choice");
}

std::optional<Objection> check_grammar(const Json& request) {
  static constexpr std::array kFields{"regex",   "ebnf",           "json_schema",
                                      "grammar", "structural_tag", "structured_outputs"};
  for (const auto* field : kFields)
    if (present(request, field) != nullptr) return grammar(field);
  for (const auto& [key, value] : request.items())
    if (key.rfind("guided_", 0) == 0 && !value.is_null()) return grammar(key);
  if (auto objection = check_response_format(request)) return objection;
  if (auto objection = check_tools(request)) return objection;
  return check_tool_choice(request);
}

// One admission is one generation: the rate and the memory are accounted that way.
std::optional<Objection> check_single(const Json& request) {
  static constexpr std::array kFields{"n", "best_of"};
  for (const auto* field : kFields) {
    const auto* count = present(request, field);
    if (count == nullptr) continue;
    if (!count->is_number_integer())
      return invalid(field, "\"" + std::string(field) + "\" must be a whole number");
    if (*count != Json(1))
      return Objection{Trouble::UnsupportedByProfile,
                       "\"" + std::string(field) + "\" must be 1: a request is admitted as one generation",
                       field};
  }
  return std::nullopt;
}

std::optional<Objection> read_stream(const Json& request, bool& stream) {
  const auto* field = present(request, "stream");
  if (field == nullptr) return std::nullopt;
  if (!field->is_boolean()) return invalid("stream", "\"stream\" must be true or false");
  stream = field->get<bool>();
  return std::nullopt;
}

std::optional<Objection> read_max_output(const Json& request, std::optional<Tokens>& max_output) {
  // The newer name wins where a client sends both, as engines do.
  static constexpr std::array kFields{"max_completion_tokens", "max_tokens"};
  for (const auto* name : kFields) {
    const auto* field = present(request, name);
    if (field == nullptr) continue;
    if (!field->is_number_integer() || (!field->is_number_unsigned() && field->get<std::int64_t>() < 0) ||
        *field == Json(0))
      return invalid(name, "\"" + std::string(name) + "\" must be a whole number from 1");
    if (field->get<std::uint64_t>() > kMostTokens)
      return invalid(name, "\"" + std::string(name) + "\" is out of all bounds");
    if (!max_output) max_output = Tokens{field->get<std::uint64_t>()};
  }
  return std::nullopt;
}

std::optional<Objection> check_prompt(Form form, const Json& request) {
  switch (form) {
    case Form::Chat: {
      const auto messages = request.find("messages");
      if (messages == request.end()) return invalid("messages", "\"messages\" is missing");
      if (!messages->is_array() || messages->empty())
        return invalid("messages", "\"messages\" must be a list of at least one message");
      return std::nullopt;
    }
    case Form::Text:
      if (!request.contains("prompt")) return invalid("prompt", "\"prompt\" is missing");
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Json> parse(std::string_view body) {
  // The library would take it for the end of the body.
  if (body.find('\0') != std::string_view::npos) return std::nullopt;
  bool too_deep = false;
  const auto guard = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  auto json = Json::parse(body.begin(), body.end(), guard, false);
  if (too_deep || json.is_discarded()) return std::nullopt;
  return json;
}

}  // namespace

std::string_view path(Form form) {
  switch (form) {
    case Form::Chat:
      return "/v1/chat/completions";
    case Form::Text:
      return "/v1/completions";
  }
  return "";
}

std::variant<Ask, Objection> read_ask(Form form, std::string_view body) {
  auto json = parse(body);
  if (!json) return invalid("", "the body is not JSON, or nested deeper than " + std::to_string(kMaxDepth));
  if (!json->is_object()) return invalid("", "the body must be a JSON object");
  Ask ask;
  ask.form = form;
  ask.json = std::move(*json);
  if (const auto* model = present(ask.json, "model"); model != nullptr) {
    if (!model->is_string()) return invalid("model", "\"model\" must be a string");
    ask.model = model->get<std::string>();
  }
  if (auto objection = check_prompt(form, ask.json)) return *objection;
  if (auto objection = read_stream(ask.json, ask.stream)) return *objection;
  if (auto objection = read_max_output(ask.json, ask.max_output)) return *objection;
  if (auto objection = check_single(ask.json)) return *objection;
  if (auto objection = check_grammar(ask.json)) return *objection;
  return ask;
}

}  // namespace troika::daemon::gateway
