// From an OpenAI-style request to the prompt's tokens. Gateway and stage both count with this.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.hpp"
#include "vocabulary/result.hpp"

namespace troika::tokenizer {

enum class Role { System, User, Assistant };

struct Message {
  Role role = Role::User;
  std::string content;
};

// Limits of one request.
inline constexpr std::size_t kMostMessages = 4096;

// The encoding of the DeepSeek V3 family, ready for the assistant's turn. Contents are text whatever they
// look like: only this function places special tokens. Error: the tokenizer lacks one of the family's special
// tokens.
Result<std::vector<TokenId>> encode_chat(const Tokenizer& tokenizer, const std::vector<Message>& messages);

// The messages of a chat request. An Error's subject is the field ("messages[2].content"), its reason what is
// wrong.
Result<std::vector<Message>> messages_of_request(const nlohmann::json& request);

// The prompt of a chat request ("messages") or of a completion request ("prompt": a string, a list of one
// string, a list of token ids, or a list of one such list; a string gets the beginning-of-sentence token in
// front, if the tokenizer has it). An Error's subject is the field, its reason what is wrong with it.
Result<std::vector<TokenId>> prompt_of_request(const Tokenizer& tokenizer, const nlohmann::json& request);

}  // namespace troika::tokenizer
