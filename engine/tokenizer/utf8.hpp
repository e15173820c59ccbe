// UTF-8 by the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troika::tokenizer {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;  // bytes; 0: the text does not start with a valid sequence
};

CodePoint first_code_point(std::string_view text);
void append_utf8(std::string& out, char32_t code_point);

// Bytes at the start of `text` that are valid UTF-8.
std::size_t valid_prefix(std::string_view text);

// Whether `text`, which does not start with a valid sequence, could be the beginning of one.
bool could_continue(std::string_view text);

}  // namespace troika::tokenizer
