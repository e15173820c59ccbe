#include "platform/log.hpp"

#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "platform/clock.hpp"
#include "vocabulary/time.hpp"

namespace troika::platform {
namespace {

constexpr std::size_t kMaxLine = 4096;

std::mutex name_mutex;
std::string log_name = "troika";  // guarded by name_mutex

void append_escaped(std::string& line, unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  line += "\\x";
  line += kHex[c >> 4];
  line += kHex[c & 15];
}

// Text from outside must not move a terminal's cursor: C0 controls and DEL, and the C1 controls in UTF-8 (C2
// 80 to C2 9F), are written as \xNN.
void append_safely(std::string& line, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const unsigned char next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (c == 0xC2 && next >= 0x80 && next <= 0x9F) {
      append_escaped(line, c);
      append_escaped(line, next);
      ++i;
    } else if (c < 0x20 || c == 0x7F) {
      append_escaped(line, c);
    } else {
      line += static_cast<char>(c);
    }
    if (line.size() >= kMaxLine) return;
  }
}

}  // namespace

void set_log_name(std::string name) {
  const std::lock_guard lock(name_mutex);
  log_name = std::move(name);
}

void log(std::string_view text) {
  std::string line = rfc3339(wall_now()) + " ";
  {
    const std::lock_guard lock(name_mutex);
    line += log_name;
  }
  line += ": ";
  append_safely(line, text);
  constexpr std::string_view kCut = " [cut]";
  if (line.size() >= kMaxLine) line = line.substr(0, kMaxLine - kCut.size() - 1) + std::string(kCut);
  line += '\n';
  // One write a line, so that lines of several processes on one pipe do not mix. Nothing is left to do where
  // stderr itself fails.
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written > 0)
      rest.remove_prefix(static_cast<std::size_t>(written));
    else if (written < 0 && errno == EINTR)
      continue;
    else
      return;
  }
}

}  // namespace troika::platform
