#include "cli/local/answer.hpp"

#include <gtest/gtest.h>

namespace troika::local {
namespace {

Instant at(int seconds) {
  return Instant{std::chrono::seconds{seconds}};
}

TEST(Answer, AWholeStreamOfAChat) {
  AnswerStream stream;
  stream.feed(
      ": comment\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\"},\"finish_reason\":null}]}\n\n",
      at(1));
  EXPECT_FALSE(stream.first_at());
  stream.feed("data: {\"choices\":[{\"delta\":{\"content\":\"Hel", at(2));
  stream.feed("lo\"}}]}\r\n\r\n", at(3));
  stream.feed("data: {\"choices\":[{\"delta\":{\"content\":\" you\"},\"finish_reason\":\"length\"}]}\n\n",
              at(4));
  stream.feed("data: {\"choices\":[],\"usage\":{\"completion_tokens\":9}}\n\ndata: [DONE]\n\n", at(5));
  EXPECT_EQ(stream.text(), "Hello you");
  EXPECT_EQ(stream.pieces(), 2u);
  EXPECT_EQ(stream.tokens(), 9u);
  EXPECT_EQ(stream.finish_reason(), "length");
  EXPECT_TRUE(stream.done());
  EXPECT_EQ(stream.first_at(), at(3));
  EXPECT_EQ(stream.last_at(), at(4));
}

TEST(Answer, AnErrorEventIsToldByItsCode) {
  AnswerStream stream;
  stream.feed(
      "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: "
      "{\"error\":{\"message\":\"died\",\"code\":\"upstream_truncated\"}}\n\n",
      at(1));
  EXPECT_EQ(stream.error_code(), "upstream_truncated");
  EXPECT_EQ(stream.error_message(), "died");
  EXPECT_FALSE(stream.done());
}

TEST(Answer, GarbageIsCountedNotBelieved) {
  AnswerStream stream;
  stream.feed("data: nonsense\n\ndata: {\"choices\":7}\n\n", at(1));
  EXPECT_EQ(stream.events_that_are_no_json(), 1u);
  EXPECT_EQ(stream.text(), "");
}

TEST(Answer, TheCodeOfARefusal) {
  EXPECT_EQ(error_code_of("{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"\"}}"),
            "rate_limit_exceeded");
  EXPECT_EQ(error_code_of("{\"error\":\"no\"}"), "");
  EXPECT_EQ(error_code_of("<html>"), "");
}

}  // namespace
}  // namespace troika::local
