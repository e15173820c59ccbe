#include "engine/safetensors/json_reader.hpp"

#include <charconv>
#include <cstring>
#include <limits>

namespace troika::safetensors {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool ends_plain_text(char c) {
  return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto tail = [&](unsigned shift) { out.push_back(static_cast<char>(0x80 | (point >> shift & 0x3f))); };
  if (point < 0x80) {
    out.push_back(static_cast<char>(point));
  } else if (point < 0x800) {
    out.push_back(static_cast<char>(0xc0 | point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | point >> 12));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xf0 | point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Bytes of the sequence that begins at `at`; 0: it is not well formed (Unicode, table 3-7).
std::size_t sequence_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool second = first == 0xe0   ? byte(1) >= 0xa0 && byte(1) <= 0xbf
                        : first == 0xed ? byte(1) >= 0x80 && byte(1) <= 0x9f
                                        : tail(1);
    return second && tail(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool second = first == 0xf0   ? byte(1) >= 0x90 && byte(1) <= 0xbf
                        : first == 0xf4 ? byte(1) >= 0x80 && byte(1) <= 0x8f
                                        : tail(1);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<std::size_t> find_bad_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t word = 0;
    if (at + 8 <= text.size()) {
      std::memcpy(&word, text.data() + at, 8);
      if ((word & kHighBits) == 0) {
        at += 8;
        continue;
      }
    }
    const std::size_t size = sequence_at(text, at);
    if (size == 0) return at;
    at += size;
  }
  return std::nullopt;
}

const char* JsonReader::text(Kind kind) {
  switch (kind) {
    case Kind::Object:
      return "an object";
    case Kind::Array:
      return "a list";
    case Kind::String:
      return "a string";
    case Kind::Unsigned:
      return "a number";
    case Kind::OtherNumber:
      return "a number below 0, with a fraction or beyond 64 bits";
    case Kind::Boolean:
      return "a truth value";
    case Kind::Null:
      return "null";
    case Kind::Nothing:
      break;
  }
  return "no value";
}

std::string JsonReader::problem() const {
  return problem_ ? "byte " + std::to_string(at_) + ": " + *problem_ : std::string{};
}

bool JsonReader::fail(const char* what) {
  if (!problem_) problem_ = what;
  return false;
}

void JsonReader::pass_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

bool JsonReader::take(char wanted) {
  if (at_ >= text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

bool JsonReader::word(std::string_view wanted) {
  if (text_.substr(at_, wanted.size()) != wanted) return fail("no JSON value");
  at_ += wanted.size();
  return true;
}

JsonReader::Kind JsonReader::next() {
  pass_space();
  if (failed() || at_ >= text_.size()) return Kind::Nothing;
  switch (text_[at_]) {
    case '{':
      return Kind::Object;
    case '[':
      return Kind::Array;
    case '"':
      return Kind::String;
    case 't':
    case 'f':
      return Kind::Boolean;
    case 'n':
      return Kind::Null;
    case '-':
      return Kind::OtherNumber;
    default:
      break;
  }
  if (!is_digit(text_[at_])) return Kind::Nothing;
  const char* const begin = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  const char* behind = begin;
  while (behind != end && is_digit(*behind))
    ++behind;
  if (behind != end && (*behind == '.' || *behind == 'e' || *behind == 'E')) return Kind::OtherNumber;
  if (behind - begin <= std::numeric_limits<std::uint64_t>::digits10) return Kind::Unsigned;
  std::uint64_t value = 0;
  return std::from_chars(begin, behind, value).ec == std::errc{} ? Kind::Unsigned : Kind::OtherNumber;
}

bool JsonReader::enter(Kind kind) {
  pass_space();
  if (failed()) return false;
  if (depth_ == kDeepest) return fail("nested too deeply");
  if (!take(kind == Kind::Object ? '{' : '[')) return fail("another value is expected");
  ++depth_;
  fresh_ = true;
  return true;
}

bool JsonReader::leave() {
  --depth_;
  fresh_ = false;
  return false;
}

bool JsonReader::member(std::string_view& key) {
  if (failed()) return false;
  pass_space();
  if (take('}')) return leave();
  if (!fresh_) {
    if (!take(',')) return fail("',' or '}' is expected");
    pass_space();
  }
  fresh_ = false;
  if (at_ >= text_.size() || text_[at_] != '"') return fail("a key is expected");
  if (!string(key)) return false;
  pass_space();
  if (!take(':')) return fail("':' is expected");
  return true;
}

bool JsonReader::element() {
  if (failed()) return false;
  pass_space();
  if (take(']')) return leave();
  if (!fresh_ && !take(',')) return fail("',' or ']' is expected");
  fresh_ = false;
  return true;
}

bool JsonReader::string(std::string_view& value) {
  pass_space();
  if (failed() || !take('"')) return fail("a string is expected");
  const std::size_t begin = at_;
  const char* const end = text_.data() + text_.size();
  const char* at = text_.data() + begin;
  while (at != end && !ends_plain_text(*at))
    ++at;
  at_ = static_cast<std::size_t>(at - text_.data());
  if (at_ == text_.size()) return fail("the string does not end");
  if (text_[at_] == '\\') return escaped(value, begin);
  if (text_[at_] != '"') return fail("a control character in a string");
  value = text_.substr(begin, at_++ - begin);
  return true;
}

// The rest of a string of which the first escape stands at at_.
bool JsonReader::escaped(std::string_view& value, std::size_t begin) {
  scratch_.assign(text_.substr(begin, at_ - begin));
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') {
      value = scratch_;
      return true;
    }
    if (static_cast<unsigned char>(c) < 0x20) return fail("a control character in a string");
    if (c != '\\')
      scratch_.push_back(c);
    else if (!escape())
      return false;
  }
  return fail("the string does not end");
}

// What stands behind a backslash.
bool JsonReader::escape() {
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  if (at_ >= text_.size()) return fail("the string does not end");
  const char c = text_[at_++];
  if (const auto known = kNames.find(c); known != std::string_view::npos) {
    scratch_.push_back(kMeant[known]);
    return true;
  }
  if (c != 'u') return fail("an unknown escape in a string");
  std::uint32_t high = 0, low = 0;
  if (!four_digits(high)) return false;
  if (high >= 0xdc00 && high <= 0xdfff) return fail("half of a surrogate pair");
  if (high >= 0xd800 && high <= 0xdbff) {
    if (!take('\\') || !take('u')) return fail("half of a surrogate pair");
    if (!four_digits(low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return fail("half of a surrogate pair");
    high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  }
  append_utf8(scratch_, high);
  return true;
}

bool JsonReader::four_digits(std::uint32_t& unit) {
  const std::string_view digits = text_.substr(at_, 4);
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, unit, 16);
  if (digits.size() != 4 || parsed.ec != std::errc{} || parsed.ptr != end)
    return fail("\\u wants four hexadecimal digits");
  at_ += 4;
  return true;
}

bool JsonReader::number(std::uint64_t& value) {
  if (next() != Kind::Unsigned) return fail("a whole number is expected");
  const std::size_t begin = at_;
  if (!skip_number()) return false;
  std::from_chars(text_.data() + begin, text_.data() + at_, value);
  return true;
}

bool JsonReader::skip_number() {
  const auto digits = [&] {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_]))
      ++at_;
    return at_ > begin;
  };
  (void)take('-');
  if (!take('0') && !digits()) return fail("no number");
  if (at_ < text_.size() && is_digit(text_[at_])) return fail("a number with a leading 0");
  if (take('.') && !digits()) return fail("no digit behind '.'");
  if (take('e') || take('E')) {
    if (!take('-')) (void)take('+');
    if (!digits()) return fail("no digit in an exponent");
  }
  return true;
}

bool JsonReader::skip() {
  std::string_view ignored;
  switch (next()) {
    case Kind::Object:
      if (!enter(Kind::Object)) return false;
      while (member(ignored))
        if (!skip()) return false;
      return !failed();
    case Kind::Array:
      if (!enter(Kind::Array)) return false;
      while (element())
        if (!skip()) return false;
      return !failed();
    case Kind::String:
      return string(ignored);
    case Kind::Unsigned:
    case Kind::OtherNumber:
      return skip_number();
    case Kind::Boolean:
      return word(text_[at_] == 't' ? "true" : "false");
    case Kind::Null:
      return word("null");
    case Kind::Nothing:
      break;
  }
  return fail("no JSON value");
}

bool JsonReader::end() {
  pass_space();
  if (failed()) return false;
  return at_ == text_.size() || fail("more text behind the value");
}

}  // namespace troika::safetensors
