// A small but real byte-level BPE in the form of DeepSeek V3's tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vocabulary/result.hpp"

namespace troika::maker {

struct ToyTokenizer {
  std::string json;        // tokenizer.json
  std::uint32_t size = 0;  // ids are below
  std::uint32_t bos = 0;
  std::uint32_t eos = 0;
};

// Trains at most `merges` merges on the text: always the most frequent pair, ties in the order of the words.
Result<ToyTokenizer> train_tokenizer(std::string_view text, std::uint32_t merges);

}  // namespace troika::maker
