#include "engine/tokenizer/bpe.hpp"

#include <functional>
#include <queue>
#include <tuple>

namespace troika::tokenizer {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

struct Symbol {
  TokenId token;
  std::uint32_t previous;
  std::uint32_t next;
  bool gone;
};

struct Candidate {
  std::uint32_t rank;
  std::uint32_t left;  // position of the left symbol
  TokenId left_token;  // as they were when the candidate was found
  TokenId right_token;
  TokenId result;

  bool operator>(const Candidate& other) const {
    return std::tie(rank, left) > std::tie(other.rank, other.left);
  }
};

}  // namespace

std::size_t merge_piece(const MergeTable& table, std::string_view piece, std::vector<TokenId>& out) {
  std::vector<Symbol> symbols(piece.size());
  for (std::uint32_t i = 0; i < piece.size(); ++i) {
    symbols[i] = {table.byte_token[static_cast<std::uint8_t>(piece[i])], i == 0 ? kNone : i - 1,
                  i + 1 == piece.size() ? kNone : i + 1, false};
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](std::uint32_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    const TokenId a = symbols[left].token;
    const TokenId b = symbols[symbols[left].next].token;
    const auto found = table.merges.find(MergeTable::key(a, b));
    if (found != table.merges.end()) queue.push({found->second.rank, left, a, b, found->second.result});
  };
  for (std::uint32_t i = 0; i + 1 < piece.size(); ++i)
    consider(i);
  std::size_t steps = 0;
  while (!queue.empty()) {
    ++steps;
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    if (left.gone || left.token != best.left_token || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    if (right.token != best.right_token) continue;
    right.gone = true;
    left.token = best.result;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  for (std::uint32_t i = piece.empty() ? kNone : 0; i != kNone; i = symbols[i].next)
    out.push_back(symbols[i].token);
  return steps;
}

}  // namespace troika::tokenizer
