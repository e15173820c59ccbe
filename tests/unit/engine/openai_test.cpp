#include "engine/native/service/openai.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/tokenizer/toy.hpp"

namespace troika::native {
namespace {

using nlohmann::json;

const ApiLimits kLimits{"small", 100, 1000, 42};

std::variant<ApiRequest, ApiFault> chat(const std::string& more, const ApiLimits& limits = kLimits) {
  return parse_request(true, R"({"messages":[{"role":"user","content":"hi"}])" + more + "}", tokenizer::toy(),
                       limits);
}

TEST(OpenAiRequest, DefaultsAreOpenAis) {
  const auto parsed = chat("");
  const auto& request = std::get<ApiRequest>(parsed);
  EXPECT_FALSE(request.stream);
  EXPECT_EQ(request.generation.sampling.temperature, 1.0F);
  EXPECT_EQ(request.generation.sampling.seed, 42U);
  EXPECT_EQ(request.generation.max_tokens, 100 - request.generation.prompt.size());
  const auto completion = parse_request(false, R"({"prompt":"hi"})", tokenizer::toy(), kLimits);
  EXPECT_EQ(std::get<ApiRequest>(completion).generation.max_tokens, 16U);
}

TEST(OpenAiRequest, ReadsWhatItKnowsAndIgnoresTheUnknown) {
  const auto parsed = chat(
      R"(,"model":"x","stream":true,"stream_options":{"include_usage":true},"temperature":0,"top_p":0.5,"seed":-1,
          "max_completion_tokens":7,"stop":["a","b"],"ignore_eos":true,"user":"me","n":1,"tools":[],"foo":{"bar":1})");
  ASSERT_TRUE(std::holds_alternative<ApiRequest>(parsed)) << std::get<ApiFault>(parsed).message;
  const auto& request = std::get<ApiRequest>(parsed);
  EXPECT_TRUE(request.stream && request.include_usage && request.generation.ignore_eos);
  EXPECT_EQ(request.generation.max_tokens, 7U);
  EXPECT_EQ(request.generation.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.generation.sampling.seed, 0xffffffffffffffffU);
}

TEST(OpenAiRequest, OverTheContextNamesBothFigures) {
  const auto parsed = chat(R"(,"max_tokens":5000)");
  const auto& fault = std::get<ApiFault>(parsed);
  EXPECT_EQ(fault.status, 400);
  EXPECT_EQ(fault.code, "context_length_exceeded");
  EXPECT_NE(fault.message.find("100 tokens"), std::string::npos) << fault.message;
  EXPECT_NE(fault.message.find("5000 of output"), std::string::npos) << fault.message;
  const auto by_cache = chat(R"(,"max_tokens":50)", {"small", 100, 32, 1});
  EXPECT_EQ(std::get<ApiFault>(by_cache).code, "context_length_exceeded");
}

struct Bad {
  const char* more;
  const char* param;
};

void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.param;
}

class BadFields : public testing::TestWithParam<Bad> {};

TEST_P(BadFields, AreNamed) {
  const auto parsed = chat(GetParam().more);
  ASSERT_TRUE(std::holds_alternative<ApiFault>(parsed));
  EXPECT_EQ(std::get<ApiFault>(parsed).param, GetParam().param);
  EXPECT_EQ(std::get<ApiFault>(parsed).status, 400);
  const auto body = json::parse(fault_body(std::get<ApiFault>(parsed)));
  for (const char* key : {"message", "type", "param", "code"})
    EXPECT_TRUE(body["error"].contains(key));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadFields,
    testing::Values(Bad{R"(,"stream":1)", "stream"}, Bad{R"(,"temperature":"hot")", "temperature"},
                    Bad{R"(,"temperature":3)", "temperature"}, Bad{R"(,"temperature":-1)", "temperature"},
                    Bad{R"(,"top_p":0)", "top_p"}, Bad{R"(,"top_p":1.5)", "top_p"},
                    Bad{R"(,"seed":1.5)", "seed"}, Bad{R"(,"max_tokens":0)", "max_tokens"},
                    Bad{R"(,"max_tokens":-3)", "max_tokens"}, Bad{R"(,"max_tokens":"9")", "max_tokens"},
                    Bad{R"(,"max_completion_tokens":1.5)", "max_completion_tokens"},
                    Bad{R"(,"stop":5)", "stop"}, Bad{R"(,"stop":[""])", "stop"},
                    Bad{R"(,"stop":[1])", "stop"}, Bad{R"(,"n":2)", "n"},
                    Bad{R"(,"logprobs":true)", "logprobs"}, Bad{R"(,"tools":[{"type":"function"}])", "tools"},
                    Bad{R"(,"response_format":{"type":"json_object"})", "response_format"},
                    Bad{R"(,"presence_penalty":0.5)", "presence_penalty"}, Bad{R"(,"top_k":4)", "top_k"},
                    Bad{R"(,"stream_options":5)", "stream_options"}, Bad{R"(,"model":5)", "model"},
                    Bad{R"(,"stream_options":{"include_usage":1})", "stream_options.include_usage"}));

TEST(OpenAiRequest, BodiesThatAreNoRequestAreRefused) {
  for (const char* body :
       {"", "{", "[]", "5", "{\"messages\":[]}", "{}", "\xff", "{\"messages\":[{\"role\":\"user\"}]}"}) {
    EXPECT_TRUE(std::holds_alternative<ApiFault>(parse_request(true, body, tokenizer::toy(), kLimits)))
        << body;
  }
  const std::string zero = std::string(R"({"messages":[{"role":"user","content":"hi"}]})") + '\0';
  EXPECT_TRUE(std::holds_alternative<ApiFault>(parse_request(true, zero, tokenizer::toy(), kLimits)));
  const std::string deep(100'000, '[');
  EXPECT_TRUE(std::holds_alternative<ApiFault>(parse_request(true, deep, tokenizer::toy(), kLimits)));
}

TEST(OpenAiAnswer, HasOpenAisForm) {
  GenerationRequest wanted;
  wanted.prompt = {5, 6};
  wanted.max_tokens = 1;
  Generation generation(std::move(wanted), tokenizer::toy(), {});
  generation.take(tokenizer::toy().encode("a")->at(0));
  const AnswerHead head{true, "chatcmpl-1", "small", 1234};
  const auto answer = json::parse(answer_body(head, "a\"b", generation));
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "a\"b");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"], (json{{"prompt_tokens", 2}, {"completion_tokens", 1}, {"total_tokens", 3}}));
  const auto event = text_event(head, "x");
  ASSERT_TRUE(event.starts_with("data: ") && event.ends_with("\n\n"));
  const auto chunk = json::parse(event.substr(6));
  EXPECT_EQ(chunk["object"], "chat.completion.chunk");
  EXPECT_EQ(chunk["choices"][0]["delta"]["content"], "x");
  EXPECT_TRUE(chunk["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(json::parse(usage_event(head, generation).substr(6))["choices"], json::array());
  const AnswerHead plain{false, "cmpl-1", "small", 1234};
  EXPECT_EQ(json::parse(answer_body(plain, "t", generation))["object"], "text_completion");
  EXPECT_EQ(json::parse(text_event(plain, "t").substr(6))["choices"][0]["text"], "t");
}

}  // namespace
}  // namespace troika::native
