#include "engine/native/service/generation.hpp"

#include <gtest/gtest.h>

#include "tests/unit/tokenizer/toy.hpp"

namespace troika::native {
namespace {

TEST(StopMatcher, FindsStopsAcrossPiecesAndGivesBackFalseStarts) {
  StopMatcher matcher({"END", "\n\n"});
  EXPECT_EQ(matcher.push("abcE"), "abc");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("x"), "ENx");
  EXPECT_EQ(matcher.push("y\n"), "y");
  EXPECT_EQ(matcher.push("\nrest"), "");
  EXPECT_TRUE(matcher.matched());
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, TheFirstInTheTextWins) {
  StopMatcher matcher({"bc", "abcd"});
  EXPECT_EQ(matcher.push("xabcd"), "x");
  EXPECT_TRUE(matcher.matched());
}

TEST(StopMatcher, GivesTheRestAtTheEnd) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.push("aEN"), "a");
  EXPECT_EQ(matcher.finish(), "EN");
}

GenerationRequest request(std::uint32_t max_tokens) {
  GenerationRequest out;
  out.prompt = {5};
  out.max_tokens = max_tokens;
  return out;
}

TEST(Generation, EndsAtTheEndTokenUnlessItIsIgnored) {
  Generation generation(request(10), tokenizer::toy(), {1});
  EXPECT_FALSE(generation.take(tokenizer::toy().encode("a")->at(0)));
  EXPECT_TRUE(generation.take(1));
  EXPECT_EQ(generation.finish(), Finish::Stop);
  EXPECT_EQ(generation.take_text(), "a");
  EXPECT_EQ(generation.completion_tokens(), 2U);
  auto ignoring = request(2);
  ignoring.ignore_eos = true;
  Generation other(std::move(ignoring), tokenizer::toy(), {1});
  EXPECT_FALSE(other.take(1));
  EXPECT_TRUE(other.take(1));
  EXPECT_EQ(other.finish(), Finish::Length);
  EXPECT_EQ(other.take_text(), "");
}

TEST(Generation, HoldsBackHalfCharactersAndReplacesThemAtTheEnd) {
  Generation generation(request(2), tokenizer::toy(), {});
  int changes = 0;
  generation.changed = [&] { ++changes; };
  const auto tokens = tokenizer::toy().encode("\xf0\x9f");
  ASSERT_EQ(tokens->size(), 2U);
  generation.take((*tokens)[0]);
  EXPECT_FALSE(generation.has_text());
  EXPECT_EQ(changes, 0);
  EXPECT_TRUE(generation.take((*tokens)[1]));
  EXPECT_EQ(generation.take_text(), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(changes, 1);
}

TEST(Generation, StopsAtAStopStringWithoutShowingIt) {
  auto wanted = request(50);
  wanted.stop = {"bc"};
  Generation generation(std::move(wanted), tokenizer::toy(), {});
  std::string text;
  for (const char* piece : {"a", "b", "c", "d"}) {
    if (generation.take(tokenizer::toy().encode(piece)->at(0))) break;
  }
  EXPECT_EQ(generation.take_text(), "a");
  EXPECT_EQ(generation.finish(), Finish::Stop);
  EXPECT_EQ(generation.completion_tokens(), 3U);
}

}  // namespace
}  // namespace troika::native
