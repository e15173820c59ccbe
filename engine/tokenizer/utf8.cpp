#include "engine/tokenizer/utf8.hpp"

#include <cstdint>

namespace troika::tokenizer {
namespace {

struct Lead {
  std::size_t length = 0;   // of the whole sequence; 0: not a lead byte
  std::uint8_t low = 0x80;  // bounds of the second byte
  std::uint8_t high = 0xbf;
};

Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte >= 0xc2 && byte <= 0xdf) return {2};
  if (byte == 0xe0) return {3, 0xa0};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {3};
  if (byte == 0xf0) return {4, 0x90};
  if (byte >= 0xf1 && byte <= 0xf3) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {};
}

std::uint8_t at(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

// Leading bytes of `text` that agree with one sequence.
std::size_t agreeing(std::string_view text, const Lead& lead) {
  std::size_t i = 1;
  for (; i < lead.length && i < text.size(); ++i) {
    const auto byte = at(text, i);
    if (i == 1 ? byte < lead.low || byte > lead.high : (byte & 0xc0) != 0x80) break;
  }
  return i;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  if (text.empty()) return {};
  const auto lead = lead_of(at(text, 0));
  if (lead.length == 0 || agreeing(text, lead) < lead.length) return {};
  if (lead.length == 1) return {at(text, 0), 1};
  char32_t value = at(text, 0) & (0x7fU >> lead.length);
  for (std::size_t i = 1; i < lead.length; ++i)
    value = (value << 6U) | (at(text, i) & 0x3fU);
  return {value, lead.length};
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xc0 | (c >> 6U)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3fU)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | (c >> 12U)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6U) & 0x3fU)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3fU)));
  } else {
    out.push_back(static_cast<char>(0xf0 | (c >> 18U)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12U) & 0x3fU)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6U) & 0x3fU)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3fU)));
  }
}

std::size_t valid_prefix(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const auto length = first_code_point(text.substr(position)).length;
    if (length == 0) break;
    position += length;
  }
  return position;
}

bool could_continue(std::string_view text) {
  if (text.empty()) return false;
  const auto lead = lead_of(at(text, 0));
  return text.size() < lead.length && agreeing(text, lead) == text.size();
}

}  // namespace troika::tokenizer
