#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace troika::cli {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: not UTF-8 here
};

CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  std::size_t length = 0;
  std::uint32_t value = 0;
  if ((first & 0xE0) == 0xC0) length = 2, value = first & 0x1Fu;
  if ((first & 0xF0) == 0xE0) length = 3, value = first & 0x0Fu;
  if ((first & 0xF8) == 0xF0) length = 4, value = first & 0x07u;
  if (length == 0 || text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return {};
  return {value, length};
}

// C0, DEL, C1, and the marks that turn the direction of the text around them (they can make a line lie).
bool is_control(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

std::size_t columns_of(std::uint32_t c) {
  const bool wide =
      (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
      (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
      (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

std::string_view sequence(Tone tone) {
  switch (tone) {
    case Tone::Plain:
      return "";
    case Tone::Good:
      return "\033[32m";
    case Tone::Bad:
      return "\033[31m";
    case Tone::Doubtful:
      return "\033[33m";
    case Tone::Faint:
      return "\033[2m";
    case Tone::Strong:
      return "\033[1m";
  }
  return "";
}

}  // namespace

Style style_of(int fd) {
  Style style;
  if (::isatty(fd) != 1) return style;
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  style.colour =
      (no_colour == nullptr || *no_colour == '\0') && term != nullptr && std::string_view(term) != "dumb";
  winsize size{};
  constexpr std::size_t kUsual = 80;
  style.width = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
  return style;
}

std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint point = decode(text);
    const std::size_t bytes = point.bytes == 0 ? 1 : point.bytes;
    if (point.bytes == 0 || is_control(point.value)) {
      for (std::size_t i = 0; i < bytes; ++i)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::size_t columns(std::string_view utf8) {
  std::size_t sum = 0;
  while (!utf8.empty()) {
    const CodePoint point = decode(utf8);
    sum += point.bytes == 0 ? 1 : columns_of(point.value);
    utf8.remove_prefix(point.bytes == 0 ? 1 : point.bytes);
  }
  return sum;
}

std::string cut(std::string_view utf8, std::size_t width) {
  if (width == 0 || columns(utf8) <= width) return std::string(utf8);
  std::string out;
  std::size_t used = 1;  // the '~'
  while (!utf8.empty()) {
    const CodePoint point = decode(utf8);
    const std::size_t bytes = point.bytes == 0 ? 1 : point.bytes;
    const std::size_t needed = point.bytes == 0 ? 1 : columns_of(point.value);
    if (used + needed > width) break;
    used += needed;
    out += utf8.substr(0, bytes);
    utf8.remove_prefix(bytes);
  }
  return out + "~";
}

std::string toned(std::string_view text, Tone tone, const Style& style) {
  if (!style.colour || tone == Tone::Plain || text.empty()) return std::string(text);
  return std::string(sequence(tone)) + std::string(text) + "\033[0m";
}

std::string wrapped(std::string_view text, std::string_view indent, std::size_t width) {
  std::string out(indent);
  std::size_t used = columns(indent);
  bool first = true;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const std::size_t needed = columns(word) + (first ? 0 : 1);
    if (!first && width != 0 && used + needed > width) {
      out += "\n" + std::string(indent);
      used = columns(indent);
      first = true;
    }
    if (!first) out += ' ';
    out += word;
    used += columns(word) + (first ? 0 : 1);
    first = false;
  }
  return out;
}

}  // namespace troika::cli
