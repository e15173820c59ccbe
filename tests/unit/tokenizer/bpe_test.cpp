#include "engine/tokenizer/bpe.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/tokenizer/toy.hpp"

namespace troika::tokenizer {
namespace {

// Bytes 'a'..'d' are tokens 0..3; merges in order of rank.
MergeTable table_of(const std::vector<std::pair<TokenId, TokenId>>& merges) {
  MergeTable table;
  for (unsigned i = 0; i < 256; ++i)
    table.byte_token[i] = i >= 'a' && i <= 'd' ? i - 'a' : 100 + i;
  std::uint32_t rank = 0;
  for (const auto& [left, right] : merges) {
    table.merges[MergeTable::key(left, right)] = {rank, 1000 + rank};
    ++rank;
  }
  return table;
}

// The definition: merge every place of the best pair, again and again.
std::vector<TokenId> naive(const MergeTable& table, std::string_view piece) {
  std::vector<TokenId> tokens;
  for (const char c : piece)
    tokens.push_back(table.byte_token[static_cast<std::uint8_t>(c)]);
  for (;;) {
    std::size_t at = 0;
    const Merge* best = nullptr;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto found = table.merges.find(MergeTable::key(tokens[i], tokens[i + 1]));
      if (found != table.merges.end() && (best == nullptr || found->second.rank < best->rank)) {
        best = &found->second;
        at = i;
      }
    }
    if (best == nullptr) return tokens;
    tokens[at] = best->result;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(Bpe, LowestRankFirstLeftmostOfEquals) {
  const auto table = table_of({{1, 2}, {0, 1}, {0, 1000}});
  std::vector<TokenId> out;
  merge_piece(table, "abc", out);
  EXPECT_EQ(out, std::vector<TokenId>{1002});
  out.clear();
  const auto twice = table_of({{0, 0}});
  merge_piece(twice, "aaa", out);
  EXPECT_EQ(out, (std::vector<TokenId>{1000, 0}));
}

TEST(Bpe, AgreesWithTheDefinitionOnRandomTables) {
  std::mt19937 engine(3);
  const auto random = [&] { return static_cast<unsigned>(engine()); };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<TokenId, TokenId>> merges;
    for (unsigned i = 0; i < 12; ++i) {
      const auto pick = [&] { return random() % 3 == 0 && i > 0 ? 1000 + random() % i : random() % 4; };
      merges.emplace_back(static_cast<TokenId>(pick()), static_cast<TokenId>(pick()));
    }
    const auto table = table_of(merges);
    std::string piece;
    for (unsigned k = random() % 40; k > 0; --k)
      piece.push_back(static_cast<char>('a' + random() % 4));
    std::vector<TokenId> out;
    merge_piece(table, piece, out);
    EXPECT_EQ(out, naive(table, piece)) << piece;
  }
}

TEST(Bpe, StepsGrowWithTheLengthNotItsSquare) {
  const auto table = table_of({{0, 0}, {1000, 1000}, {1001, 1001}, {1002, 1002}});
  std::vector<TokenId> out;
  const std::string piece(100'000, 'a');
  EXPECT_LE(merge_piece(table, piece, out), 3 * piece.size());
  EXPECT_EQ(out.size(), piece.size() / 16);
}

TEST(Bpe, LongTextWithoutSpacesIsTokenised) {
  for (const char* unit : {"a", " ", "!", "1", "\n", "é", "你"}) {
    std::string text;
    while (text.size() < 100'000)
      text += unit;
    const auto tokens = toy().encode(text);
    ASSERT_TRUE(tokens.ok()) << unit;
    EXPECT_EQ(toy().decode(*tokens), text);
  }
}

}  // namespace
}  // namespace troika::tokenizer
