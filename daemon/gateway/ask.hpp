// What a client asks: a chat or text completion in OpenAI's form. Only what the gateway must know is read;
// fields that nobody here knows pass through to the engine as they are.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "daemon/gateway/answers.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon::gateway {

enum class Form { Chat, Text };
std::string_view path(Form form);  // "/v1/chat/completions"

struct Ask {
  Form form{};
  nlohmann::json json;
  bool stream = false;
  std::optional<std::string> model;  // absent: the client named none
  std::optional<Tokens> max_output;  // absent: the client named none
};

struct Objection {
  Trouble trouble{};  // InvalidRequest or UnsupportedByProfile
  std::string message;
  std::string param;  // the field
};

// The prompt itself is judged by who counts its tokens.
std::variant<Ask, Objection> read_ask(Form form, std::string_view body);

}  // namespace troika::daemon::gateway
