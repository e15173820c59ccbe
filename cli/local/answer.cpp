#include "cli/local/answer.hpp"

#include <nlohmann/json.hpp>

namespace troika::local {
namespace {

using Json = nlohmann::json;

// The text at `path`, empty where it is something else or not there.
std::string text_at(const Json& json, const Json::json_pointer& path) {
  const Json* const found = json.contains(path) ? &json.at(path) : nullptr;
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string error_code_of(std::string_view body) {
  const Json json = Json::parse(body.begin(), body.end(), nullptr, false);
  return json.is_object() ? text_at(json, Json::json_pointer("/error/code")) : "";
}

void AnswerStream::feed(std::string_view bytes, Instant now) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    // Engines and the gateway put each event into one line; what else may stand in a stream carries no text.
    if (line_.starts_with("data:")) event(line_.substr(line_.starts_with("data: ") ? 6 : 5), now);
    line_.clear();
  }
}

void AnswerStream::event(const std::string& data, Instant now) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const Json json = Json::parse(data, nullptr, false);
  if (!json.is_object()) {
    ++garbled_;
    return;
  }
  if (json.contains("error")) {
    error_code_ = text_at(json, Json::json_pointer("/error/code"));
    error_message_ = text_at(json, Json::json_pointer("/error/message"));
    return;
  }
  const std::string chat = text_at(json, Json::json_pointer("/choices/0/delta/content"));
  const std::string piece = chat.empty() ? text_at(json, Json::json_pointer("/choices/0/text")) : chat;
  if (!piece.empty()) {
    text_ += piece;
    ++pieces_;
    if (!first_at_) first_at_ = now;
    last_at_ = now;
  }
  if (const auto reason = text_at(json, Json::json_pointer("/choices/0/finish_reason")); !reason.empty())
    finish_reason_ = reason;
  const Json::json_pointer usage("/usage/completion_tokens");
  if (json.contains(usage) && json.at(usage).is_number_unsigned())
    usage_tokens_ = json.at(usage).get<std::uint64_t>();
}

}  // namespace troika::local
