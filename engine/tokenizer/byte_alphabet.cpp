#include "engine/tokenizer/byte_alphabet.hpp"

#include <array>

#include "engine/tokenizer/utf8.hpp"

namespace troika::tokenizer {
namespace {

// Bytes that print keep their own code point; the others take 256, 257, ... in order (the scheme of GPT-2).
constexpr bool prints(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int, 512> byte{};

  constexpr Alphabet() {
    byte.fill(-1);
    char32_t next = 256;
    for (unsigned value = 0; value < 256; ++value) {
      character[value] = prints(value) ? static_cast<char32_t>(value) : next++;
      byte[character[value]] = static_cast<int>(value);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

std::string alphabet_of(std::uint8_t byte) {
  std::string out;
  append_utf8(out, kAlphabet.character[byte]);
  return out;
}

std::string to_alphabet(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes)
    append_utf8(out, kAlphabet.character[static_cast<std::uint8_t>(byte)]);
  return out;
}

std::optional<std::string> from_alphabet(std::string_view word) {
  std::string bytes;
  while (!word.empty()) {
    const auto [code_point, length] = first_code_point(word);
    if (length == 0 || code_point >= kAlphabet.byte.size() || kAlphabet.byte[code_point] < 0)
      return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.byte[code_point]));
    word.remove_prefix(length);
  }
  return bytes;
}

}  // namespace troika::tokenizer
