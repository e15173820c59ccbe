#include "cli/terminal.hpp"

#include <gtest/gtest.h>

namespace troika::cli {
namespace {

TEST(Terminal, ControlCharactersOfRemoteTextNeverReachIt) {
  EXPECT_EQ(shown("a\033[2Jb\r\n\t\x7f"), "a\\x1b[2Jb\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(shown("\xc2\x9b"
                  "31m"),
            "\\xc2\\x9b31m")
      << "C1 introducer in UTF-8";
  EXPECT_EQ(shown("x\xe2\x80\xaey"), "x\\xe2\\x80\\xaey") << "right-to-left override";
}

TEST(Terminal, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(shown("\xff"
                  "a\xc3"),
            "\\xffa\\xc3");
  EXPECT_EQ(shown("\xc0\x80"), "\\xc0\\x80") << "overlong";
  EXPECT_EQ(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
}

TEST(Terminal, OtherLanguagesStayReadable) {
  EXPECT_EQ(shown("分片 é"), "分片 é");
}

TEST(Terminal, WideCharactersTakeTwoColumns) {
  EXPECT_EQ(columns("abc"), 3u);
  EXPECT_EQ(columns("é"), 1u);
  EXPECT_EQ(columns("分片"), 4u);
}

TEST(Terminal, CutTextEndsWithATildeAndFits) {
  EXPECT_EQ(cut("abcdef", 6), "abcdef");
  EXPECT_EQ(cut("abcdef", 5), "abcd~");
  EXPECT_EQ(cut("分片分片", 4), "分~") << "a wide character is not halved";
  EXPECT_EQ(cut("abcdef", 0), "abcdef") << "no limit";
}

TEST(Terminal, WordsAreWrappedWithinTheWidth) {
  EXPECT_EQ(wrapped("one two three", "  ", 9), "  one two\n  three");
  EXPECT_EQ(wrapped("unbreakable a", "  ", 6), "  unbreakable\n  a");
  EXPECT_EQ(wrapped("one two three", "  ", 0), "  one two three");
}

TEST(Terminal, ColourOnlyWhereTheStyleHasIt) {
  EXPECT_EQ(toned("x", Tone::Bad, Style{false, 0}), "x");
  EXPECT_EQ(toned("x", Tone::Bad, Style{true, 0}), "\033[31mx\033[0m");
  EXPECT_EQ(toned("x", Tone::Plain, Style{true, 0}), "x");
}

}  // namespace
}  // namespace troika::cli
