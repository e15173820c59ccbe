// The printable alphabet in which byte-level BPE writes bytes: each byte has one character of U+0021..U+0143.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troika::tokenizer {

// The character of a byte, in UTF-8.
std::string alphabet_of(std::uint8_t byte);
// Bytes written in the alphabet.
std::string to_alphabet(std::string_view bytes);
// The bytes that a word of the alphabet stands for; empty result where a character is not of the alphabet.
std::optional<std::string> from_alphabet(std::string_view word);

}  // namespace troika::tokenizer
