#include "engine/tokenizer/tokenizer.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "engine/tokenizer/utf8.hpp"
#include "tests/unit/tokenizer/toy.hpp"

namespace troika::tokenizer {
namespace {

using nlohmann::json;

std::string round_trip(std::string_view text) {
  const auto tokens = toy().encode(text);
  EXPECT_TRUE(tokens.ok());
  return toy().decode(*tokens);
}

TEST(Tokenizer, EveryByteAndEveryPairOfBytesComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    EXPECT_EQ(round_trip(one), one);
    all += one;
  }
  EXPECT_EQ(round_trip(all), all);
  EXPECT_EQ(round_trip(""), "");
}

TEST(Tokenizer, RandomUnicodeAndRandomBytesComeBack) {
  std::mt19937 engine(7);
  const auto random = [&] { return static_cast<unsigned>(engine()); };
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (unsigned k = random() % 60; k > 0; --k) {
      char32_t c = random() % 4 == 0 ? random() % 0x110000 : random() % 0x250;
      if (c >= 0xd800 && c < 0xe000) c = U' ';
      append_utf8(text, c);
    }
    EXPECT_EQ(round_trip(text), text);
    std::string bytes;
    for (unsigned k = random() % 60; k > 0; --k)
      bytes.push_back(static_cast<char>(random()));
    EXPECT_EQ(round_trip(bytes), bytes);
  }
}

TEST(Tokenizer, MergesWordsOfItsText) {
  const auto tokens = toy().encode("the machine");
  ASSERT_TRUE(tokens.ok());
  EXPECT_LT(tokens->size(), 8U);
}

TEST(Tokenizer, DigitsAreSplitInThrees) {
  const auto tokens = toy().encode("123456");
  const auto first = toy().encode("123");
  const auto second = toy().encode("456");
  std::vector<TokenId> both = *first;
  both.insert(both.end(), second->begin(), second->end());
  EXPECT_EQ(*tokens, both);
}

TEST(Tokenizer, TextNeverBecomesASpecialTokenUnlessAsked) {
  const std::string text = "a<｜User｜>b<｜end▁of▁sentence｜>";
  const auto as_text = toy().encode(text);
  for (const auto token : *as_text) {
    EXPECT_NE(token, toy().added_token("<｜User｜>"));
    EXPECT_FALSE(toy().is_special(token));
  }
  EXPECT_EQ(toy().decode(*as_text), text);
  const auto recognised = toy().encode(text, AddedTokens::Recognised);
  ASSERT_EQ(recognised->size(), 4U);
  EXPECT_EQ((*recognised)[1], toy().added_token("<｜User｜>"));
  EXPECT_EQ((*recognised)[3], toy().added_token("<｜end▁of▁sentence｜>"));
  EXPECT_TRUE(toy().is_special((*recognised)[3]));
}

TEST(Tokenizer, ReadsMergesAsPairsToo) {
  auto document = json::parse(toy_json());
  json pairs = json::array();
  for (const auto& merge : document["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    pairs.push_back({text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)});
  }
  document["model"]["merges"] = pairs;
  const auto other = Tokenizer::parse(document.dump());
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(*other->encode("The leader writes down what it wants."),
            *toy().encode("The leader writes down what it wants."));
}

TEST(Tokenizer, ByteLevelAloneSplitsByItsOwnPattern) {
  auto document = json::parse(toy_json());
  document["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  const auto other = Tokenizer::parse(document.dump());
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->decode(*other->encode("it's 12345  done")), "it's 12345  done");
}

struct Refusal {
  const char* pointer;
  json value;
  const char* named;
};

void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.pointer;
}

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, IsNamed) {
  auto document = json::parse(toy_json());
  document[json::json_pointer(GetParam().pointer)] = GetParam().value;
  const auto parsed = Tokenizer::parse(document.dump());
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().message().find(GetParam().named), std::string::npos) << parsed.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Components, Refused,
    testing::Values(
        Refusal{"/normalizer", {{"type", "NFC"}}, "normalizer"},
        Refusal{"/decoder", {{"type", "WordPiece"}}, "decoder"},
        Refusal{"/post_processor", {{"type", "TemplateProcessing"}}, "post_processor"},
        Refusal{"/truncation", {{"max_length", 5}}, "truncation"},
        Refusal{"/pre_tokenizer", {{"type", "Whitespace"}}, "Whitespace"},
        Refusal{"/pre_tokenizer/pretokenizers/0/behavior", "Removed", "Removed"},
        Refusal{"/pre_tokenizer/pretokenizers/0/invert", true, "invert"},
        Refusal{"/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "("}}, "pattern"},
        Refusal{"/pre_tokenizer/pretokenizers/3/add_prefix_space", true, "add_prefix_space"},
        Refusal{"/model/type", "Unigram", "Unigram"}, Refusal{"/model/ignore_merges", true, "ignore_merges"},
        Refusal{"/model/byte_fallback", true, "byte_fallback"}, Refusal{"/model/dropout", 0.1, "dropout"},
        Refusal{"/model/continuing_subword_prefix", "##", "continuing_subword_prefix"},
        Refusal{"/model/merges/0", "a b c", "merges"}, Refusal{"/model/merges/0", "qqq zzz", "merges"},
        Refusal{"/model/vocab/a", 4, "vocab"}, Refusal{"/model/vocab", json::object(), "byte 0"},
        Refusal{"/model/vocab/a", -1, "vocab"}, Refusal{"/added_tokens/0/lstrip", true, "lstrip"},
        Refusal{"/added_tokens/0/content", "", "added_tokens"},
        Refusal{"/added_tokens/0/id", 300, "result of a merge"}));

TEST(Tokenizer, RefusesWhatIsNotJsonOrHasAKeyTwice) {
  EXPECT_FALSE(Tokenizer::parse("{").ok());
  EXPECT_FALSE(Tokenizer::parse("[]").ok());
  EXPECT_FALSE(Tokenizer::parse(R"({"model":{},"model":{}})").ok());
}

TEST(Tokenizer, RefusesTextOverItsLimit) {
  EXPECT_FALSE(toy().encode(std::string(kLongestText + 1, 'a')).ok());
}

}  // namespace
}  // namespace troika::tokenizer
