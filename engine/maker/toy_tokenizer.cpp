#include "engine/maker/toy_tokenizer.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "engine/tokenizer/byte_alphabet.hpp"
#include "engine/tokenizer/pretokenizer.hpp"

namespace troika::maker {
namespace {

using json = nlohmann::ordered_json;
using Word = std::vector<std::string>;

// The special tokens of the family at the front and at the end of the ids.
constexpr const char* kFront[] = {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"};
constexpr const char* kBack[] = {"<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>",
                                 "<｜User｜>",     "<｜Assistant｜>", "<|EOT|>"};

json split(const char* pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

json pre_tokenizer() {
  return {
      {"type", "Sequence"},
      {"pretokenizers",
       {split("\\p{N}{1,3}"),
        split("[一-龥぀-ゟ゠-ヿ]+"),
        split("[!\"#$%&'()*+,\\-./"
              ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
              "?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"),
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}}}}};
}

json added_token(std::uint32_t id, const char* content, bool special) {
  return {{"id", id},        {"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", true}, {"special", special}};
}

Result<std::map<Word, std::uint64_t>> count_words(std::string_view text) {
  TROIKA_TRY(splitter, tokenizer::Pretokenizer::parse(nlohmann::json(pre_tokenizer())));
  TROIKA_TRY(pieces, splitter.split(text));
  std::map<Word, std::uint64_t> words;
  for (const auto piece : pieces) {
    Word word;
    for (const char byte : piece)
      word.push_back(tokenizer::alphabet_of(static_cast<std::uint8_t>(byte)));
    ++words[word];
  }
  return words;
}

using Pair = std::pair<std::string, std::string>;

std::map<Word, std::uint64_t> merged(const std::map<Word, std::uint64_t>& words, const Pair& pair) {
  std::map<Word, std::uint64_t> out;
  for (const auto& [word, count] : words) {
    Word next;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (i + 1 < word.size() && word[i] == pair.first && word[i + 1] == pair.second) {
        next.push_back(word[i] + word[i + 1]);
        ++i;
      } else {
        next.push_back(word[i]);
      }
    }
    out[next] += count;
  }
  return out;
}

}  // namespace

Result<ToyTokenizer> train_tokenizer(std::string_view text, std::uint32_t merges) {
  TROIKA_TRY(words, count_words(text));
  json vocabulary = json::object();
  json merge_list = json::array();
  json added = json::array();
  std::uint32_t next = 0;
  for (const char* content : kFront)
    added.push_back(added_token(next++, content, true));
  for (unsigned byte = 0; byte < 256; ++byte) {
    vocabulary[tokenizer::alphabet_of(static_cast<std::uint8_t>(byte))] = next++;
  }
  std::set<std::string> known;
  for (std::uint32_t made = 0; made < merges;) {
    std::map<Pair, std::uint64_t> pairs;
    for (const auto& [word, count] : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
        pairs[{word[i], word[i + 1]}] += count;
    }
    const std::pair<const Pair, std::uint64_t>* best = nullptr;
    for (const auto& entry : pairs) {
      if (best == nullptr || entry.second > best->second) best = &entry;
    }
    if (best == nullptr || best->second < 2) break;
    const Pair pair = best->first;
    words = merged(words, pair);
    merge_list.push_back(pair.first + " " + pair.second);
    if (known.insert(pair.first + pair.second).second) vocabulary[pair.first + pair.second] = next++;
    ++made;
  }
  ToyTokenizer out;
  for (const std::string content : kBack) {
    const bool special =
        content.find("User") == std::string::npos && content.find("Assistant") == std::string::npos;
    added.push_back(added_token(next++, content.c_str(), special));
  }
  out.size = next;
  out.bos = 0;
  out.eos = 1;
  const json document = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", {{"type", "Sequence"}, {"normalizers", json::array()}}},
      {"pre_tokenizer", pre_tokenizer()},
      {"post_processor",
       {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}, {"use_regex", true}}},
      {"decoder",
       {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", vocabulary},
        {"merges", merge_list}}}};
  out.json = document.dump(1) + "\n";
  return out;
}

}  // namespace troika::maker
