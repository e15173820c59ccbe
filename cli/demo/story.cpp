#include "cli/demo/story.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>

#include "cli/terminal.hpp"
#include "platform/clock.hpp"

namespace troika::demo {
namespace {

std::atomic<bool> unread = false;

void write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  if (!unread.exchange(true))
    std::fputs("troika: nobody reads standard output any more: the demo ends here and removes what it made\n",
               stderr);
}

}  // namespace

bool story_is_read() {
  return !unread;
}

double Story::seconds() const {
  return platform::seconds_since(began_);
}

void Story::line(std::string_view text) const {
  write(fmt::format("{:7.1f} s  {}\n", seconds(), cli::shown(text)));
}

void Story::step(std::string title) {
  steps_.push_back({std::move(title), seconds(), -1});
  line(fmt::format("{}. {}", steps_.size(), steps_.back().title));
}

void Story::tell(std::string_view text) const {
  line(fmt::format("     {}", text));
}

void Story::seen(std::string_view text) {
  if (!steps_.empty()) steps_.back().seen_s = seconds();
  line(fmt::format("   + {}", text));
}

void Story::failed(const Error& error) {
  failure_ = error.message();
  line(fmt::format("   ! {}", failure_));
}

void Story::block(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += fmt::format("{:16}{}\n", "", cli::shown(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  write(out);
}

nlohmann::json Story::document() const {
  nlohmann::json out{{"format", 1},
                     {"verdict", !failure_.empty() ? "error"
                                 : ended_          ? "ok"
                                                   : "cannot_tell"},
                     {"findings", nlohmann::json::array()},
                     {"version", TROIKA_VERSION},
                     {"seconds", seconds()},
                     {"steps", nlohmann::json::array()},
                     {"facts", facts}};
  for (const Step& step : steps_)
    out["steps"].push_back({{"title", step.title}, {"began_s", step.began_s}, {"seen_s", step.seen_s}});
  if (!failure_.empty()) out["failure"] = failure_;
  return out;
}

}  // namespace troika::demo
