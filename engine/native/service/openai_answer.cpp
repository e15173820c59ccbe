#include <nlohmann/json.hpp>

#include "engine/native/service/openai.hpp"

namespace troika::native {
namespace {

using json = nlohmann::ordered_json;

json nullable(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}

std::string dumped(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string event(const json& document) {
  return "data: " + dumped(document) + "\n\n";
}

json usage(const Generation& generation) {
  return {{"prompt_tokens", generation.prompt_tokens()},
          {"completion_tokens", generation.completion_tokens()},
          {"total_tokens", generation.prompt_tokens() + generation.completion_tokens()}};
}

json finish_json(const std::optional<Finish>& finish) {
  return finish ? json(name(*finish)) : json(nullptr);
}

json document(const AnswerHead& head, const char* chat_object, const char* text_object) {
  return {{"id", head.id},
          {"object", head.chat ? chat_object : text_object},
          {"created", head.created},
          {"model", head.model}};
}

json chunk(const AnswerHead& head, json delta, const std::optional<Finish>& finish) {
  json out = document(head, "chat.completion.chunk", "text_completion");
  json choice = {{"index", 0}};
  if (head.chat)
    choice["delta"] = std::move(delta);
  else
    choice["text"] = std::move(delta);
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_json(finish);
  out["choices"] = json::array({choice});
  return out;
}

}  // namespace

std::string fault_body(const ApiFault& fault) {
  return dumped({{"error",
                  {{"message", fault.message},
                   {"type", fault.type},
                   {"param", nullable(fault.param)},
                   {"code", nullable(fault.code)}}}});
}

std::string answer_body(const AnswerHead& head, const std::string& text, const Generation& generation) {
  json out = document(head, "chat.completion", "text_completion");
  json choice = {{"index", 0}};
  if (head.chat)
    choice["message"] = {{"role", "assistant"}, {"content", text}};
  else
    choice["text"] = text;
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_json(generation.finish());
  out["choices"] = json::array({choice});
  out["usage"] = usage(generation);
  return dumped(out);
}

std::string role_event(const AnswerHead& head) {
  return event(chunk(head, {{"role", "assistant"}, {"content", ""}}, std::nullopt));
}

std::string text_event(const AnswerHead& head, const std::string& text) {
  return event(chunk(head, head.chat ? json{{"content", text}} : json(text), std::nullopt));
}

std::string finish_event(const AnswerHead& head, Finish finish) {
  return event(chunk(head, head.chat ? json::object() : json(""), finish));
}

std::string usage_event(const AnswerHead& head, const Generation& generation) {
  json out = document(head, "chat.completion.chunk", "text_completion");
  out["choices"] = json::array();
  out["usage"] = usage(generation);
  return event(out);
}

}  // namespace troika::native
