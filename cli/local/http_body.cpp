#include <algorithm>
#include <charconv>

#include "cli/local/http.hpp"

namespace troika::local {
namespace {

constexpr std::size_t kMaxLine = 4096;  // of a chunk's size or a trailer

Error broken(std::string reason) {
  return Error{"read the answer's body", "", std::move(reason)};
}

Result<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size())
    return broken("\"" + std::string(text) + "\" is no length");
  return value;
}

}  // namespace

Result<BodyDecoder> BodyDecoder::of(unsigned status, const std::map<std::string, std::string>& headers) {
  BodyDecoder decoder;
  const auto encoding = headers.find("transfer-encoding");
  const auto length = headers.find("content-length");
  if (status == 204 || status == 304) {
    decoder.framing_ = Framing::None;
    decoder.complete_ = true;
  } else if (encoding != headers.end()) {
    if (encoding->second != "chunked") return broken("transfer encoding " + encoding->second);
    decoder.framing_ = Framing::Chunked;
  } else if (length != headers.end()) {
    TROIKA_TRY(bytes, number(length->second, 10));
    decoder.framing_ = Framing::Length;
    decoder.left_ = bytes;
    decoder.complete_ = bytes == 0;
  }
  return decoder;
}

Status BodyDecoder::feed(std::string_view bytes, std::string& out) {
  switch (framing_) {
    case Framing::UntilClose:
      out += bytes;
      return Done{};
    case Framing::Chunked:
      return feed_chunked(bytes, out);
    case Framing::None:
    case Framing::Length:
      break;
  }
  if (bytes.size() > left_) return broken("more bytes than its Content-Length");
  out += bytes;
  left_ -= bytes.size();
  complete_ = left_ == 0;
  return Done{};
}

// A whole line stands in line_.
Status BodyDecoder::chunk_line() {
  if (line_.ends_with('\r')) line_.pop_back();
  switch (at_) {
    case At::Size: {
      TROIKA_TRY(size, number(std::string_view(line_).substr(0, line_.find(';')), 16));
      left_ = size;
      at_ = size == 0 ? At::Trailer : At::Data;
      break;
    }
    case At::DataEnd:
      if (!line_.empty()) return broken("a chunk longer than its size");
      at_ = At::Size;
      break;
    case At::Trailer:
      complete_ = line_.empty();
      break;
    case At::Data:
      break;
  }
  line_.clear();
  return Done{};
}

Status BodyDecoder::feed_chunked(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    if (complete_) return broken("bytes after the last chunk");
    if (at_ == At::Data) {
      const std::size_t taken = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      out += bytes.substr(0, taken);
      bytes.remove_prefix(taken);
      left_ -= taken;
      if (left_ == 0) at_ = At::DataEnd;
      continue;
    }
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > kMaxLine) return broken("a chunk head over " + std::to_string(kMaxLine) + " bytes");
    if (end == std::string_view::npos) return Done{};
    bytes.remove_prefix(end + 1);
    TROIKA_CHECK(chunk_line());
  }
  return Done{};
}

}  // namespace troika::local
