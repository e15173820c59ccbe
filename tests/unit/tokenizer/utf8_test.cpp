#include "engine/tokenizer/utf8.hpp"

#include <gtest/gtest.h>

#include "engine/tokenizer/byte_alphabet.hpp"
#include "engine/tokenizer/stream_decoder.hpp"

namespace troika::tokenizer {
namespace {

TEST(Utf8, RefusesOverlongSurrogatesAndBeyondTheEnd) {
  for (const char* bad :
       {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xff", "\xe4\xbd"}) {
    EXPECT_EQ(first_code_point(bad).length, 0U) << bad;
  }
  EXPECT_EQ(first_code_point("\xf4\x8f\xbf\xbf").value, char32_t{0x10ffff});
  EXPECT_EQ(valid_prefix("ab\xe4\xbd\xa0\xff"), 5U);
}

TEST(Utf8, KnowsWhatCouldGoOn) {
  EXPECT_TRUE(could_continue("\xe4"));
  EXPECT_TRUE(could_continue("\xe4\xbd"));
  EXPECT_TRUE(could_continue("\xf0\x9f\x98"));
  EXPECT_FALSE(could_continue("\xff"));
  EXPECT_FALSE(could_continue("\xe0\x80"));
  EXPECT_FALSE(could_continue(""));
}

TEST(ByteAlphabet, GivesEveryByteItsOwnCharacter) {
  EXPECT_EQ(alphabet_of('A'), "A");
  EXPECT_EQ(alphabet_of(' '), "Ġ");
  EXPECT_EQ(alphabet_of('\n'), "Ċ");
  std::string all;
  for (int byte = 0; byte < 256; ++byte)
    all.push_back(static_cast<char>(byte));
  EXPECT_EQ(from_alphabet(to_alphabet(all)), all);
  EXPECT_FALSE(from_alphabet("｜").has_value());
}

TEST(StreamDecoder, NeverGivesHalfACharacter) {
  StreamDecoder decoder;
  EXPECT_EQ(decoder.push("a\xf0"), "a");
  EXPECT_EQ(decoder.push("\x9f\x98"), "");
  EXPECT_EQ(decoder.push("\x80"
                         "b"),
            "\xf0\x9f\x98\x80"
            "b");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, ReplacesWhatCannotBeACharacter) {
  StreamDecoder decoder;
  EXPECT_EQ(decoder.push("\xff"
                         "a\xe4"),
            "\xef\xbf\xbd"
            "a");
  EXPECT_EQ(decoder.push("b"),
            "\xef\xbf\xbd"
            "b");
  EXPECT_EQ(decoder.push("\xe4\xbd"), "");
  EXPECT_EQ(decoder.finish(), "\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace troika::tokenizer
