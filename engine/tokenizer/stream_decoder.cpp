#include "engine/tokenizer/stream_decoder.hpp"

#include "engine/tokenizer/utf8.hpp"

namespace troika::tokenizer {
namespace {
constexpr std::string_view kReplacement = "\xef\xbf\xbd";
}

std::string StreamDecoder::push(std::string_view bytes) {
  held_ += bytes;
  std::string_view rest = held_;
  std::string out;
  while (!rest.empty()) {
    const auto valid = valid_prefix(rest);
    out += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty() || could_continue(rest)) break;
    out += kReplacement;
    rest.remove_prefix(1);
  }
  held_ = std::string(rest);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  for (std::size_t i = 0; i < held_.size(); ++i)
    out += kReplacement;
  held_.clear();
  return out;
}

}  // namespace troika::tokenizer
