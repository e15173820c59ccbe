#include "config/document.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace troika::config {
namespace {

constexpr std::uintmax_t kMaxFile = 256u << 10;  // 256 nodes in 64 replicas take 20 KiB
// Tables in tables are destroyed by recursion.
constexpr std::ptrdiff_t kMaxDots = 64;
constexpr std::size_t kMaxWritten = 100;  // characters of a value that a message repeats

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Where the character with this number (from 1) begins: columns count characters, not bytes.
std::size_t offset_of(std::string_view line, std::uint32_t column) {
  std::size_t at = 0;
  for (std::uint32_t passed = 1; passed < column && at < line.size(); ++passed) {
    ++at;
    while (at < line.size() && continues_character(line[at]))
      ++at;
  }
  return at;
}

std::string cut(std::string text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.pop_back();
  if (text.size() <= kMaxWritten) return text;
  std::size_t end = kMaxWritten;
  while (end > 0 && continues_character(text[end]))
    --end;
  return text.substr(0, end) + "...";
}

// Dots of the key, or of the whole line where an inline table may have keys of its own.
std::uint32_t first_deep_line(std::string_view text) {
  std::uint32_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::string_view keys =
        line.find('{') == std::string_view::npos ? line.substr(0, line.find('=')) : line;
    const bool comment = line.starts_with('#');
    if (!comment && std::count(keys.begin(), keys.end(), '.') > kMaxDots) return number;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return 0;
}

// Whether the parser reaches an end, good or bad, without breaking an assertion of its own.
bool is_parsable(std::string_view text) {
  try {
    (void)toml::parse(text);
    return true;
  } catch (const TomlInvariant&) {
    return false;
  }
}

// The parser reads forward only: a text cut before the line is parsable, one with it is not.
std::uint32_t first_unparsable_line(std::string_view text) {
  std::vector<std::size_t> ends;  // of each line
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    ends.push_back(end + 1);
    at = end + 1;
  }
  const auto first = std::partition_point(ends.begin(), ends.end(),
                                          [&](std::size_t end) { return is_parsable(text.substr(0, end)); });
  return static_cast<std::uint32_t>(first - ends.begin()) + 1;
}

}  // namespace

void break_toml(const char* assertion) {
  throw TomlInvariant(assertion);
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

Document::Document(std::string_view text, std::string file)
    : text_(without_mark(text)), file_(std::move(file)) {
  parse();
}

void Document::parse() {
  const auto not_toml = [this](std::uint32_t at_line, std::uint32_t column, std::string reason) {
    const toml::source_position at{at_line, column};
    add({at, at, nullptr}, "", "", "not TOML: " + std::move(reason));
  };
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))
    return not_toml(1, 0, "UTF-8 is expected, this is UTF-16");
  if (const std::uint32_t deep = first_deep_line(text_); deep > 0)
    return not_toml(deep, 0, "tables nested deeper than " + std::to_string(kMaxDots));
  if (!is_parsable(text_)) return not_toml(first_unparsable_line(text_), 0, "the line cannot be read");
  toml::parse_result result = toml::parse(text_);
  parsed_ = result.succeeded();
  if (parsed_) {
    root_ = std::move(result).table();
    return;
  }
  const toml::parse_error& error = result.error();
  not_toml(error.source().begin.line, error.source().begin.column, std::string(error.description()));
}

Loaded<std::string> Document::read(const std::string& file) {
  const auto bad = [&](std::string reason) {
    return Loaded<std::string>{std::nullopt,
                               {Problem{file, 0, 0, "", "", "cannot be read: " + std::move(reason), ""}}};
  };
  std::error_code failed;
  const auto status = std::filesystem::status(file, failed);
  if (failed) return bad(failed.message());
  if (!std::filesystem::exists(status)) return bad("No such file or directory");
  if (!std::filesystem::is_regular_file(status)) return bad("not a regular file");
  if (std::filesystem::file_size(file, failed) > kMaxFile || failed)
    return bad(failed ? failed.message() : "longer than 256 KiB");
  std::ifstream in(file, std::ios::binary);
  if (!in) return bad(std::strerror(errno));
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return bad(std::strerror(errno));
  return {std::move(text), {}};
}

void Document::add(const toml::source_region& where, std::string key, std::string value, std::string expected,
                   std::string code) {
  bad_.insert(key);
  problems_.push_back(Problem{file_, where.begin.line, where.begin.column, std::move(key), std::move(value),
                              std::move(expected), std::move(code)});
}

std::string_view Document::line(std::uint32_t number) const {
  std::string_view rest = text_;
  for (std::uint32_t passed = 1; passed < number; ++passed) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  return rest.substr(0, rest.find('\n'));
}

std::string Document::written(const toml::node& value) const {
  const toml::source_region& where = value.source();
  if (where.begin.line == 0) return "{...}";  // a table that only its children spell out
  const std::string_view first = line(where.begin.line);
  const std::size_t begin = offset_of(first, where.begin.column);
  if (where.end.line != where.begin.line) return cut(std::string(first.substr(begin)) + "...");
  const std::size_t end = std::max(begin, offset_of(first, where.end.column));
  return cut(std::string(first.substr(begin, end - begin)));
}

std::vector<Problem> Document::problems() const {
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
  });
  return sorted;
}

}  // namespace troika::config
