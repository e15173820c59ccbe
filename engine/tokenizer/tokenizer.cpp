#include "engine/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "engine/safetensors/files.hpp"
#include "engine/safetensors/json_strict.hpp"
#include "engine/tokenizer/byte_alphabet.hpp"
#include "engine/tokenizer/fault.hpp"
#include "engine/tokenizer/utf8.hpp"

namespace troika::tokenizer {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestFile = 64U << 20U;  // DeepSeek's is below 8 MB
constexpr TokenId kHighestId = 4'000'000;

bool absent_or(const json& object, const char* key, const json& allowed) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() || *found == allowed;
}

Status check_components(const json& document) {
  const auto normalizer = document.value("normalizer", json());
  const bool no_normalizer =
      normalizer.is_null() || (normalizer.is_object() && normalizer.value("type", json()) == "Sequence" &&
                               normalizer.value("normalizers", json()) == json::array());
  if (!no_normalizer) return fault("normalizer", "a normalizer is not supported");
  const auto decoder = document.value("decoder", json());
  if (!decoder.is_null() && !(decoder.is_object() && decoder.value("type", json()) == "ByteLevel")) {
    return fault("decoder", "only ByteLevel is supported");
  }
  const auto post = document.value("post_processor", json());
  if (!post.is_null() && !(post.is_object() && post.value("type", json()) == "ByteLevel")) {
    return fault("post_processor", "only ByteLevel is supported");
  }
  for (const char* key : {"truncation", "padding"}) {
    if (!absent_or(document, key, nullptr)) return fault(key, "not supported");
  }
  return Done{};
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const std::string& directory) {
  TROIKA_TRY(text, safetensors::read_text(directory + "/tokenizer.json", kLargestFile));
  return parse(text);
}

Result<Tokenizer> Tokenizer::parse(std::string_view text) {
  TROIKA_TRY(document, safetensors::parse_strict(text, "tokenizer.json"));
  if (!document.is_object() || !document.contains("model") || !document["model"].is_object()) {
    return fault("model", "missing or not an object");
  }
  TROIKA_CHECK(check_components(document));
  if (!document.contains("pre_tokenizer")) return fault("pre_tokenizer", "missing");
  TROIKA_TRY(pretokenizer, Pretokenizer::parse(document["pre_tokenizer"]));
  Tokenizer tokenizer(std::move(pretokenizer));
  TROIKA_CHECK(tokenizer.read_model(document["model"]));
  TROIKA_CHECK(tokenizer.read_added(document.value("added_tokens", json::array())));
  return tokenizer;
}

Status Tokenizer::read_model(const json& model) {
  if (model.value("type", json("BPE")) != "BPE")
    return fault("model.type", model["type"].dump() + " is not supported");
  for (const char* key : {"ignore_merges", "byte_fallback", "fuse_unk"}) {
    if (!absent_or(model, key, false)) return fault(std::string("model.") + key, "true is not supported");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!absent_or(model, key, "")) return fault(std::string("model.") + key, "not supported");
  }
  if (!absent_or(model, "dropout", 0.0)) return fault("model.dropout", "not supported");
  if (!model.contains("vocab") || !model.contains("merges")) return fault("model", "lacks vocab or merges");
  TROIKA_CHECK(read_vocabulary(model["vocab"]));
  return read_merges(model["merges"]);
}

Status Tokenizer::read_vocabulary(const json& vocabulary) {
  if (!vocabulary.is_object()) return fault("model.vocab", "not an object");
  for (const auto& [word, id] : vocabulary.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kHighestId) {
      return fault("model.vocab",
                   "the id of " + word + " is not a whole number up to " + std::to_string(kHighestId));
    }
    const auto token = id.get<TokenId>();
    if (token >= bytes_.size()) bytes_.resize(token + 1);
    if (!bytes_[token].empty())
      return fault("model.vocab", "the id " + std::to_string(token) + " occurs twice");
    // Words outside the alphabet (special tokens kept in the vocabulary) stand for their own text.
    bytes_[token] = from_alphabet(word).value_or(word);
    ids_.emplace(word, token);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto found = ids_.find(alphabet_of(static_cast<std::uint8_t>(byte)));
    if (found == ids_.end())
      return fault("model.vocab", "the byte " + std::to_string(byte) + " has no token");
    table_.byte_token[byte] = found->second;
  }
  special_.resize(bytes_.size());
  return Done{};
}

Status Tokenizer::read_merges(const json& merges) {
  if (!merges.is_array()) return fault("model.merges", "not a list");
  std::uint32_t rank = 0;
  for (const auto& merge : merges) {
    std::string left;
    std::string right;
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const auto space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        return fault("model.merges", "entry " + std::to_string(rank) + " is not two words");
      }
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      return fault("model.merges", "entry " + std::to_string(rank) + " is not a pair");
    }
    const auto a = ids_.find(left);
    const auto b = ids_.find(right);
    const auto result = ids_.find(left + right);
    if (a == ids_.end() || b == ids_.end() || result == ids_.end()) {
      return fault("model.merges",
                   "entry " + std::to_string(rank) + " names a word that is not in the vocabulary");
    }
    table_.merges.try_emplace(MergeTable::key(a->second, b->second), Merge{rank, result->second});
    ++rank;
  }
  return Done{};
}

Status Tokenizer::read_added(const json& added) {
  if (!added.is_array()) return fault("added_tokens", "not a list");
  std::vector<bool> merged(bytes_.size());
  for (const auto& [key, merge] : table_.merges)
    merged[merge.result] = true;
  for (const auto token : table_.byte_token)
    merged[token] = true;
  for (const auto& entry : added) {
    if (!entry.is_object() || !entry.value("id", json()).is_number_unsigned() ||
        !entry.value("content", json()).is_string() || entry["id"].get<std::uint64_t>() > kHighestId) {
      return fault("added_tokens", "an entry without id and content");
    }
    const auto token = entry["id"].get<TokenId>();
    const auto content = entry["content"].get<std::string>();
    if (content.empty()) return fault("added_tokens", "an entry with empty content");
    for (const char* key : {"lstrip", "rstrip", "single_word"}) {
      if (!absent_or(entry, key, false))
        return fault(std::string("added_tokens.") + key, "true is not supported");
    }
    // Text of users must not be able to produce an added token by merging.
    if (token < merged.size() && merged[token])
      return fault("added_tokens", content + " is also the result of a merge");
    if (token >= bytes_.size()) {
      bytes_.resize(token + 1);
      special_.resize(token + 1);
    }
    bytes_[token] = content;
    special_[token] = entry.value("special", json(false)) == true;
    if (!added_.emplace(content, token).second) return fault("added_tokens", content + " occurs twice");
    added_longest_first_.push_back(content);
  }
  std::stable_sort(added_longest_first_.begin(), added_longest_first_.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return Done{};
}

Status Tokenizer::encode_valid(std::string_view text, std::vector<TokenId>& out) const {
  TROIKA_TRY(pieces, pretokenizer_.split(text));
  for (const auto piece : pieces)
    merge_piece(table_, piece, out);
  return Done{};
}

Status Tokenizer::encode_text(std::string_view text, std::vector<TokenId>& out) const {
  while (!text.empty()) {
    const auto valid = valid_prefix(text);
    TROIKA_CHECK(encode_valid(text.substr(0, valid), out));
    text.remove_prefix(valid);
    if (text.empty()) break;
    out.push_back(table_.byte_token[static_cast<std::uint8_t>(text.front())]);
    text.remove_prefix(1);
  }
  return Done{};
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, AddedTokens added) const {
  if (text.size() > kLongestText) return Error{"tokenize", "the text", "over 16 MiB"};
  std::vector<TokenId> out;
  if (added == AddedTokens::Recognised) {
    std::size_t start = 0;
    for (std::size_t i = 0; i < text.size();) {
      const auto rest = text.substr(i);
      const auto found = std::find_if(added_longest_first_.begin(), added_longest_first_.end(),
                                      [&](const std::string& token) { return rest.starts_with(token); });
      if (found == added_longest_first_.end()) {
        ++i;
        continue;
      }
      TROIKA_CHECK(encode_text(text.substr(start, i - start), out));
      out.push_back(added_.at(*found));
      i += found->size();
      start = i;
    }
    text.remove_prefix(start);
  }
  TROIKA_CHECK(encode_text(text, out));
  return out;
}

const std::string& Tokenizer::bytes_of(TokenId token) const {
  static const std::string none;
  return token < bytes_.size() ? bytes_[token] : none;
}

std::string Tokenizer::decode(std::span<const TokenId> tokens) const {
  std::string out;
  for (const auto token : tokens) {
    if (!is_special(token)) out += bytes_of(token);
  }
  return out;
}

bool Tokenizer::is_special(TokenId token) const {
  return token < special_.size() && special_[token];
}

std::optional<TokenId> Tokenizer::added_token(std::string_view text) const {
  const auto found = added_.find(std::string(text));
  if (found == added_.end()) return std::nullopt;
  return found->second;
}

}  // namespace troika::tokenizer
