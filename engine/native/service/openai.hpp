// OpenAI's forms: requests to what the engine needs, results to JSON. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "engine/native/service/generation.hpp"

namespace troika::native {

struct ApiLimits {
  std::string model;                 // served name
  std::uint32_t context_length = 0;  // prompt and output
  std::uint64_t kv_tokens = 0;       // that one sequence can have at most
  std::uint64_t random_seed = 0;     // for this request, if it names none
};

struct ApiFault {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // empty: null
  std::string code;   // empty: null
};

struct ApiRequest {
  bool chat = true;
  bool stream = false;
  bool include_usage = false;
  GenerationRequest generation;
};

// body: the JSON of /v1/chat/completions (chat) or /v1/completions. Fields that nobody here knows are
// ignored; fields that are known and would change the answer in a way that is not supported are faults.
std::variant<ApiRequest, ApiFault> parse_request(bool chat, std::string_view body,
                                                 const tokenizer::Tokenizer& tokenizer,
                                                 const ApiLimits& limits);

std::string fault_body(const ApiFault& fault);

// Names one answer.
struct AnswerHead {
  bool chat = true;
  std::string id;  // "chatcmpl-..." or "cmpl-..."
  std::string model;
  std::int64_t created = 0;  // seconds since 1970
};

// The whole answer.
std::string answer_body(const AnswerHead& head, const std::string& text, const Generation& generation);
// One event of a stream, "data: {...}\n\n". The first of a chat names the role.
std::string role_event(const AnswerHead& head);
std::string text_event(const AnswerHead& head, const std::string& text);
std::string finish_event(const AnswerHead& head, Finish finish);
std::string usage_event(const AnswerHead& head, const Generation& generation);
inline constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";

}  // namespace troika::native
