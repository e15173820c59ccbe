#include "agent/model/body.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace troika::model {
namespace {

// The second is of before Git LFS had its name, and counts still.
constexpr std::array<std::string_view, 2> kPointerStarts{"version https://git-lfs.github.com/spec/v1",
                                                         "version https://hawser.github.com/spec/v1"};
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::size_t kExcerpt = 120;

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  return std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
    return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
  });
}

std::string_view without_lead(std::string_view text) {
  if (starts_with(text, kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view{} : text.substr(begin);
}

bool printable(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 || c == '\n' || c == '\r' || c == '\t';
}

// A safetensors file has its header's length in the first eight bytes, most of them zero: text has none.
bool is_text(std::string_view text) {
  const std::string_view first = text.substr(0, 8);
  return !first.empty() && std::all_of(first.begin(), first.end(), printable);
}

// The ASCII that UTF-16 of either order begins with, with a byte order mark or without; empty: it is none.
std::string from_utf16(std::string_view text) {
  if (starts_with(text, "\xff\xfe") || starts_with(text, "\xfe\xff")) text.remove_prefix(2);
  if (text.size() < 8) return {};
  const std::size_t at = text[0] == '\0' ? 1 : 0;  // of the byte that says something
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size() && text[i + 1 - at] == '\0'; i += 2)
    out.push_back(text[i + at]);
  return is_text(out) && out.size() >= 8 ? out : std::string{};
}

std::string excerpt_of(std::string_view text) {
  std::string line{text.substr(0, std::min(text.find('\n'), kExcerpt))};
  std::replace_if(
      line.begin(), line.end(), [](char c) { return !printable(c); }, '?');
  return line;
}

std::string_view value_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of("\r\n"));
}

Body pointer_of(std::string_view head) {
  Body body{Code::LFS_POINTER, {}, 0, {}};
  body.oid = std::string(value_after(head, "oid sha256:"));
  const std::string_view size = value_after(head, "\nsize ");
  std::from_chars(size.data(), size.data() + size.size(), body.wanted);
  return body;
}

bool is_html(std::string_view text) {
  constexpr std::array<std::string_view, 6> kStarts{"<!doctype html", "<html",  "<head",
                                                    "<body",          "<title", "<!--"};
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [&](auto start) { return starts_with_any_case(text, start); });
}

bool is_xml(std::string_view text) {
  return starts_with_any_case(text, "<?xml") || starts_with(text, "<Error>") ||
         starts_with(text, "<ListBucketResult");
}

}  // namespace

std::optional<Body> classify_body(std::string_view head) {
  for (const std::string_view start : kPointerStarts)
    if (starts_with(head, start)) return pointer_of(head);
  // Eight bytes of zeros alone are a header of length 0; that is the header's business.
  if (head.size() > 8 && std::all_of(head.begin(), head.end(), [](char c) { return c == '\0'; }))
    return Body{Code::ZERO_FILLED, {}, 0, {}};
  const std::string wide = from_utf16(head);
  if (!wide.empty()) head = wide;
  if (!is_text(head)) return std::nullopt;
  const std::string_view text = without_lead(head);
  if (is_html(text)) return Body{Code::HTML_BODY, {}, 0, excerpt_of(text)};
  if (is_xml(text)) return Body{Code::XML_BODY, {}, 0, excerpt_of(text)};
  if (starts_with(text, "{") || starts_with(text, "[")) return Body{Code::JSON_BODY, {}, 0, excerpt_of(text)};
  return std::nullopt;
}

std::optional<Body> classify_json_file(std::string_view head) {
  const auto body = classify_body(head);
  if (!body || body->code != Code::JSON_BODY) return body;
  const std::string_view text = without_lead(head);
  const std::size_t key = text.find_first_not_of(" \t\r\n", 1);
  if (key != std::string_view::npos && starts_with(text.substr(key), "\"error\"")) return body;
  return std::nullopt;
}

std::string look_of(std::string_view head) {
  struct Start {
    std::string_view bytes;
    const char* what;
  };
  constexpr std::array kStarts{Start{"\x1f\x8b", "a gzip stream, perhaps of an error page"},
                               Start{"\x78\x9c", "a zlib stream"},
                               Start{"PK\x03\x04", "a ZIP archive, such as PyTorch's"},
                               Start{"GGUF", "a GGUF file"}, Start{"\x28\xb5\x2f\xfd", "a Zstandard stream"}};
  for (const Start& one : kStarts)
    if (starts_with(head, one.bytes)) return one.what;
  return is_text(head) ? "text: " + excerpt_of(without_lead(head)) : std::string{};
}

std::string remedy_for(const Body& body) {
  if (body.code == Code::LFS_POINTER)
    return "fetch the object itself: git lfs pull, or download the file again";
  if (body.code == Code::ZERO_FILLED)
    return "look for file system errors in the kernel's log, then fetch the file again";
  return "the download was answered with an error: check the access token and the proxy, then fetch the file "
         "again";
}

}  // namespace troika::model
