#include "engine/tokenizer/chat.hpp"

#include <utility>

namespace troika::tokenizer {
namespace {

using nlohmann::json;

constexpr const char* kBegin = "<｜begin▁of▁sentence｜>";
constexpr const char* kEnd = "<｜end▁of▁sentence｜>";
constexpr const char* kUser = "<｜User｜>";
constexpr const char* kAssistant = "<｜Assistant｜>";

Error bad_field(std::string field, std::string reason) {
  return Error{"read", std::move(field), std::move(reason)};
}

Result<std::string> read_content(const json& content, const std::string& field) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return bad_field(field, "must be a string or a list of text parts");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const auto& part = content[i];
    const auto name = field + "[" + std::to_string(i) + "]";
    if (!part.is_object()) return bad_field(name, "must be an object");
    if (part.value("type", json()) != "text") return bad_field(name + ".type", "only \"text\" is supported");
    if (!part.value("text", json()).is_string()) return bad_field(name + ".text", "must be a string");
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

Result<Message> read_message(const json& message, const std::string& field) {
  if (!message.is_object()) return bad_field(field, "must be an object");
  const auto role = message.value("role", json());
  if (!role.is_string()) return bad_field(field + ".role", "must be a string");
  Message out;
  if (role == "system" || role == "developer") {
    out.role = Role::System;
  } else if (role == "user") {
    out.role = Role::User;
  } else if (role == "assistant") {
    out.role = Role::Assistant;
  } else {
    return bad_field(field + ".role", "must be system, developer, user or assistant");
  }
  if (!message.contains("content")) return bad_field(field + ".content", "is missing");
  TROIKA_TRY(content, read_content(message["content"], field + ".content"));
  out.content = std::move(content);
  return out;
}

Result<std::vector<TokenId>> read_token_list(const Tokenizer& tokenizer, const json& list) {
  std::vector<TokenId> tokens;
  for (const auto& id : list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= tokenizer.size()) {
      return bad_field("prompt",
                       "holds something that is not a token id below " + std::to_string(tokenizer.size()));
    }
    tokens.push_back(id.get<TokenId>());
  }
  return tokens;
}

Result<std::vector<TokenId>> read_prompt(const Tokenizer& tokenizer, const json& prompt) {
  if (prompt.is_string()) {
    std::vector<TokenId> tokens;
    if (const auto begin = tokenizer.added_token(kBegin)) tokens.push_back(*begin);
    TROIKA_TRY(text, tokenizer.encode(prompt.get_ref<const std::string&>()));
    tokens.insert(tokens.end(), text.begin(), text.end());
    return tokens;
  }
  if (!prompt.is_array()) return bad_field("prompt", "must be a string or a list");
  if (prompt.empty()) return bad_field("prompt", "is empty");
  if (prompt[0].is_number()) return read_token_list(tokenizer, prompt);
  if (prompt.size() > 1) return bad_field("prompt", "holds several prompts, only one is supported");
  if (prompt[0].is_array()) return read_token_list(tokenizer, prompt[0]);
  if (prompt[0].is_string()) return read_prompt(tokenizer, prompt[0]);
  return bad_field("prompt", "must hold a string or token ids");
}

}  // namespace

Result<std::vector<TokenId>> encode_chat(const Tokenizer& tokenizer, const std::vector<Message>& messages) {
  const auto begin = tokenizer.added_token(kBegin);
  const auto end = tokenizer.added_token(kEnd);
  const auto user = tokenizer.added_token(kUser);
  const auto assistant = tokenizer.added_token(kAssistant);
  if (!begin || !end || !user || !assistant) {
    return bad_field("messages", "the model's tokenizer lacks the special tokens of DeepSeek V3's chat form");
  }
  std::string system;
  for (const auto& message : messages) {
    if (message.role != Role::System) continue;
    if (!system.empty()) system += "\n\n";
    system += message.content;
  }
  std::vector<TokenId> tokens{*begin};
  const auto append = [&](const std::string& text) -> Status {
    TROIKA_TRY(encoded, tokenizer.encode(text));
    tokens.insert(tokens.end(), encoded.begin(), encoded.end());
    return Done{};
  };
  TROIKA_CHECK(append(system));
  for (const auto& message : messages) {
    switch (message.role) {
      case Role::System:
        break;
      case Role::User:
        tokens.push_back(*user);
        TROIKA_CHECK(append(message.content));
        break;
      case Role::Assistant:
        tokens.push_back(*assistant);
        TROIKA_CHECK(append(message.content));
        tokens.push_back(*end);
        break;
    }
  }
  tokens.push_back(*assistant);
  return tokens;
}

Result<std::vector<Message>> messages_of_request(const json& request) {
  const auto found = request.find("messages");
  if (found == request.end()) return bad_field("messages", "is missing");
  if (!found->is_array() || found->empty())
    return bad_field("messages", "must be a list with at least one message");
  if (found->size() > kMostMessages) return bad_field("messages", "holds more than 4096 messages");
  std::vector<Message> messages;
  for (std::size_t i = 0; i < found->size(); ++i) {
    TROIKA_TRY(message, read_message((*found)[i], "messages[" + std::to_string(i) + "]"));
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<std::vector<TokenId>> prompt_of_request(const Tokenizer& tokenizer, const json& request) {
  if (!request.is_object()) return bad_field("request", "must be an object");
  if (request.contains("messages")) {
    TROIKA_TRY(messages, messages_of_request(request));
    return encode_chat(tokenizer, messages);
  }
  if (!request.contains("prompt")) return bad_field("messages", "is missing");
  TROIKA_TRY(tokens, read_prompt(tokenizer, request["prompt"]));
  if (tokens.empty()) return bad_field("prompt", "has no tokens");
  return tokens;
}

}  // namespace troika::tokenizer
