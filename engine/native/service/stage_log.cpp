#include "engine/native/service/stage_log.hpp"

#include <unistd.h>

namespace troika::native {
namespace {

constexpr std::size_t kLongestLine = 2048;

std::string& prefix() {
  static std::string text = "troika-stage: ";
  return text;
}

}  // namespace

void set_log_prefix(std::string text) {
  prefix() = std::move(text);
}

void stage_log(std::string_view text) {
  std::string line = prefix();
  for (const char c : text.substr(0, kLongestLine)) {
    line.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
  }
  line.push_back('\n');
  // Nobody is left to be told when stderr is gone.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace troika::native
