// Byte-level BPE from a Hugging Face tokenizer.json.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer/bpe.hpp"
#include "engine/tokenizer/pretokenizer.hpp"
#include "vocabulary/result.hpp"

namespace troika::tokenizer {

// Longest text of one call; a prompt of a million tokens is below it.
inline constexpr std::size_t kLongestText = 16U << 20U;

// Whether added tokens (such as <｜User｜>) written in a text become their ids. Never for text of users.
enum class AddedTokens { AsText, Recognised };

// Immutable after loading; may be used from several threads.
class Tokenizer {
 public:
  // Reads DIRECTORY/tokenizer.json.
  static Result<Tokenizer> load(const std::string& directory);
  // Error: not such a file, or a component that is not supported, by name.
  static Result<Tokenizer> parse(std::string_view json);

  // Any bytes may be given: those that are not UTF-8 become tokens of single bytes.
  // Error: longer than kLongestText, or a pattern passed its match limit.
  Result<std::vector<TokenId>> encode(std::string_view text, AddedTokens added = AddedTokens::AsText) const;

  // The bytes of a token; empty for ids that name none. Special tokens give their text.
  const std::string& bytes_of(TokenId token) const;
  // The bytes of all tokens, special ones (of the added tokens) left out.
  std::string decode(std::span<const TokenId> tokens) const;
  bool is_special(TokenId token) const;
  // The id of an added token by its text.
  std::optional<TokenId> added_token(std::string_view text) const;
  // One more than the highest id.
  std::size_t size() const { return bytes_.size(); }

 private:
  explicit Tokenizer(Pretokenizer pretokenizer) : pretokenizer_(std::move(pretokenizer)) {}
  Status read_model(const nlohmann::json& model);
  Status read_vocabulary(const nlohmann::json& vocabulary);
  Status read_merges(const nlohmann::json& merges);
  Status read_added(const nlohmann::json& added);
  Status encode_text(std::string_view text, std::vector<TokenId>& out) const;
  Status encode_valid(std::string_view text, std::vector<TokenId>& out) const;

  Pretokenizer pretokenizer_;
  std::unordered_map<std::string, TokenId> ids_;  // words of the alphabet
  MergeTable table_;
  std::vector<std::string> bytes_;
  std::vector<bool> special_;
  std::unordered_map<std::string, TokenId> added_;
  std::vector<std::string> added_longest_first_;
};

}  // namespace troika::tokenizer
