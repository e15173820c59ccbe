// Byte-pair merging of one piece of text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troika::tokenizer {

using TokenId = std::uint32_t;

struct Merge {
  std::uint32_t rank = 0;  // lower merges first
  TokenId result = 0;
};

struct MergeTable {
  std::vector<TokenId> byte_token = std::vector<TokenId>(256);
  std::unordered_map<std::uint64_t, Merge> merges;  // (left << 32 | right)

  static std::uint64_t key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(left) << 32U | right;
  }
};

// Appends the tokens of `piece` to `out`: always the merge of lowest rank, the leftmost of equals. Time is
// O(n log n) in the piece's bytes. Returns the number of heap steps, which tests bound.
std::size_t merge_piece(const MergeTable& table, std::string_view piece, std::vector<TokenId>& out);

}  // namespace troika::tokenizer
