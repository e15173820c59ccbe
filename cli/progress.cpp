#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/render.hpp"
#include "cli/terminal.hpp"
#include "platform/clock.hpp"

namespace troika::cli {
namespace {

constexpr auto kOnTerminal = std::chrono::milliseconds{200};
constexpr auto kElsewhere = std::chrono::seconds{30};

void to_stderr(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string progress_text(const Done& done, double seconds) {
  std::string text =
      fmt::format("{}, {} of {} files", share_text(done.bytes, done.total), done.files, done.files_total);
  if (seconds < 0.5 || done.bytes.count == 0) return text;
  const double rate = static_cast<double>(done.bytes.count) / seconds;
  text += fmt::format(", {}/s", bytes_text(Bytes{static_cast<std::uint64_t>(rate)}));
  const auto left = done.total.count - std::min(done.bytes.count, done.total.count);
  if (left > 0) text += fmt::format(", {} left", seconds_text(static_cast<double>(left) / rate));
  return text;
}

Progress::Progress(std::string doing)
    : doing_(std::move(doing)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      began_(platform::now()),
      told_(began_) {}

Progress::~Progress() {
  if (shown_ && terminal_) to_stderr("\r\033[K");
}

void Progress::tell(const Done& done, const std::string& more) {
  const Instant now = platform::now();
  if (now - told_ < (terminal_ ? Duration{kOnTerminal} : Duration{kElsewhere})) return;
  told_ = now;
  shown_ = true;
  const std::string text = doing_ + ": " + progress_text(done, platform::seconds_since(began_)) + more;
  to_stderr(terminal_ ? "\r" + cut(text, style_of(STDERR_FILENO).width) + "\033[K" : text + "\n");
}

}  // namespace troika::cli
