// Is an engine's answer whole? Modes 81, 82, 85; cases E01-E08.
#include "policies/stream.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/random.hpp"

namespace troika::policies {
namespace {

std::string chunk(const std::string& content) {
  return R"(data: {"id":"x","choices":[{"index":0,"delta":{"content":")" + content +
         R"("},"finish_reason":null}]})"
         "\n\n";
}
const std::string kStop = R"(data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
                          "\n\n";
const std::string kUsage =
    R"(data: {"id":"x","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":17}})"
    "\n\n";
const std::string kDone = "data: [DONE]\n\n";

StreamReader read(const std::string& bytes) {
  StreamReader reader;
  reader.feed(bytes);
  return reader;
}
StreamVerdict verdict(const std::string& bytes) {
  return read(bytes).verdict_at_end();
}

struct StreamCase {
  const char* what;
  std::string bytes;
  StreamVerdict verdict;
};

std::vector<StreamCase> cases() {
  const std::string text = chunk("He") + chunk("llo");
  std::string crlf;
  for (const char c : text + kStop + kDone)
    crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  std::string cr = text + kStop + kDone;
  for (char& c : cr)
    if (c == '\n') c = '\r';
  return {
      {"E01 complete", text + kStop + kDone, StreamVerdict::Complete},
      {"E02 cut in mid-event", text + R"(data: {"choices":[{"delta":{"conte)", StreamVerdict::Truncated},
      {"E02 cut in the first event", "data: {", StreamVerdict::Truncated},
      {"nothing at all", "", StreamVerdict::Truncated},
      {"clean end before any finish_reason", text, StreamVerdict::Truncated},
      {"E04 finish_reason but no [DONE]", text + kStop, StreamVerdict::CompleteNoDone},
      {"E04 without the blank line", text + kStop.substr(0, kStop.size() - 1), StreamVerdict::CompleteNoDone},
      {"E04 without any line end", text + kStop.substr(0, kStop.size() - 2), StreamVerdict::CompleteNoDone},
      {"[DONE] without a line end", text + kStop + "data: [DONE]", StreamVerdict::Complete},
      {"[DONE] cut", text + kStop + "data: [DON", StreamVerdict::Truncated},
      {"usage cut after finish_reason", text + kStop + R"(data: {"usage":{"completion_tok)",
       StreamVerdict::Truncated},
      {"mode 81: [DONE] on behalf of a failed engine", text + kDone, StreamVerdict::Truncated},
      {"E05 silence is not seen here: it ends without finish_reason", text, StreamVerdict::Truncated},
      {"E07 length with empty content",
       R"(data: {"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"},"finish_reason":"length"}]})"
       "\n\n" +
           kDone,
       StreamVerdict::Complete},
      {"E08 leaked markup is text like any other", chunk("<｜DSML｜function_calls>") + kStop + kDone,
       StreamVerdict::Complete},
      {"usage chunk with empty choices", text + kStop + kUsage + kDone, StreamVerdict::Complete},
      {"comments between", ": ping\n\n" + text + ": ping\n\n:\n\n" + kStop + kDone, StreamVerdict::Complete},
      {"CRLF", crlf, StreamVerdict::Complete},
      {"CR alone", cr, StreamVerdict::Complete},
      {"byte order mark", "\xEF\xBB\xBF" + text + kStop + kDone, StreamVerdict::Complete},
      {"no space after the colon", "data:{\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata:[DONE]\n\n",
       StreamVerdict::Complete},
      {"one event over two data lines",
       "data: {\"choices\":\ndata: [{\"finish_reason\":\"stop\"}]}\n\n" + kDone, StreamVerdict::Complete},
      {"other fields", "id: 7\nretry: 10\nevent: message\n" + kStop + kDone, StreamVerdict::Complete},
      {"error then [DONE]", text + "data: {\"error\":{\"message\":\"out of memory\"}}\n\n" + kDone,
       StreamVerdict::EngineError},
      {"error as a string", "data: {\"error\":\"boom\"}\n\n", StreamVerdict::EngineError},
      {"error that is null is none",
       "data: {\"error\":null,\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n" + kDone,
       StreamVerdict::Complete},
      {"object error", "data: {\"object\":\"error\",\"message\":\"x\"}\n\n" + kDone,
       StreamVerdict::EngineError},
      {"event type error", "event: error\ndata: {\"message\":\"x\"}\n\n" + kStop + kDone,
       StreamVerdict::EngineError},
      {"error at the end without a line end", text + "data: {\"error\":{}}", StreamVerdict::EngineError},
      {"aborted by the engine", "data: {\"choices\":[{\"finish_reason\":\"abort\"}]}\n\n" + kDone,
       StreamVerdict::EngineError},
      {"the word error inside a text", chunk("\\\"error\\\":{}") + kStop + kDone, StreamVerdict::Complete},
      {"two choices, one unfinished",
       R"(data: {"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]})"
       "\n\n" +
           kStop + kDone,
       StreamVerdict::Truncated},
      {"completions API", "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n" + kDone,
       StreamVerdict::Complete},
      {"event that is not JSON is no end", "data: hello\n\n" + kDone, StreamVerdict::Truncated},
  };
}

TEST(Stream, Verdicts) {
  for (const StreamCase& c : cases())
    EXPECT_EQ(verdict(c.bytes), c.verdict) << c.what;
}

TEST(Stream, AnySplitOfTheBytesGivesTheSameVerdict) {
  sim::Random random(7);
  for (const StreamCase& c : cases()) {
    for (int round = 0; round < 50; ++round) {
      StreamReader reader;
      std::size_t at = 0;
      while (at < c.bytes.size()) {
        const std::size_t n = 1 + random.below(round == 0 ? 1 : 40);
        reader.feed(std::string_view(c.bytes).substr(at, n));
        at += n;
      }
      ASSERT_EQ(reader.verdict_at_end(), c.verdict) << c.what;
      ASSERT_EQ(reader.completion_tokens(), read(c.bytes).completion_tokens()) << c.what;
    }
  }
}

TEST(Stream, EveryCutOfACompleteOneIsSeen) {
  const std::string whole = chunk("He") + chunk("llo") + kStop + kUsage + kDone;
  const std::size_t finish_from = (chunk("He") + chunk("llo") + kStop).size() - 2;
  for (std::size_t cut = 0; cut < finish_from; ++cut)
    ASSERT_EQ(verdict(whole.substr(0, cut)), StreamVerdict::Truncated) << cut;
  for (std::size_t cut = finish_from; cut < whole.size(); ++cut)
    ASSERT_NE(verdict(whole.substr(0, cut)), StreamVerdict::EngineError) << cut;
}

TEST(Stream, TokensAreThoseOfTheUsageElseTheChunksWithText) {
  EXPECT_EQ(read(chunk("a") + chunk("b") + kStop).completion_tokens(), Tokens{2});
  EXPECT_EQ(read(chunk("a") + kStop + kUsage + kDone).completion_tokens(), Tokens{17});
  for (const char* field : {"content", "reasoning_content", "reasoning"})
    EXPECT_EQ(read("data: {\"choices\":[{\"delta\":{\"" + std::string(field) + "\":\"x\"}}]}\n\n")
                  .completion_tokens(),
              Tokens{1})
        << field;
  EXPECT_EQ(read("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{}]}}]}\n\n").completion_tokens(),
            Tokens{1});
  EXPECT_EQ(read(chunk("")).completion_tokens(), Tokens{0});
}

TEST(Stream, ProgressIsSeenAsItGoes) {
  StreamReader reader = read(chunk("a"));
  EXPECT_EQ(reader.events(), 1u);
  EXPECT_FALSE(reader.finished());
  reader.feed(kStop);
  EXPECT_TRUE(reader.finished());
  EXPECT_FALSE(reader.done());
  reader.feed(kDone);
  EXPECT_TRUE(reader.done());
  reader.feed(chunk("after the end"));
  EXPECT_EQ(reader.events(), 3u);
  EXPECT_EQ(reader.verdict_at_end(), StreamVerdict::Complete);
}

TEST(Stream, NothingGrowsWithoutLimit) {
  StreamReader reader;
  reader.feed("data: ");
  const std::string block(1 << 16, 'x');
  for (int i = 0; i < 100; ++i)
    reader.feed(block);
  reader.feed("\n\n" + kStop + kDone);
  EXPECT_EQ(reader.verdict_at_end(), StreamVerdict::Truncated);
  StreamReader lines;
  for (int i = 0; i < 100; ++i)
    lines.feed("data: " + block + "\n");
  EXPECT_EQ(lines.verdict_at_end(), StreamVerdict::Truncated);
}

TEST(Stream, DeepJsonIsNotRead) {
  const std::string deep = "data: " + std::string(100000, '[') + "\n\n";
  EXPECT_EQ(verdict(deep + kStop + kDone), StreamVerdict::Complete)
      << "the event means nothing, the rest stands";
}

TEST(Stream, GarbageNeverCrashes) {
  sim::Random random(3);
  constexpr std::string_view kAlphabet = "data:{}[]\",\\\n\r 0e-.tfn\xE2\xFF";
  for (int round = 0; round < 3000; ++round) {
    StreamReader reader;
    std::string bytes;
    for (std::uint64_t n = random.below(200); n > 0; --n)
      bytes += kAlphabet[random.below(kAlphabet.size())];
    reader.feed(bytes);
    reader.feed("\n\n");
    const StreamVerdict v = reader.verdict_at_end();
    ASSERT_TRUE(v == StreamVerdict::Truncated || v == StreamVerdict::EngineError);
  }
}

}  // namespace
}  // namespace troika::policies
