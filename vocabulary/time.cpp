#include "vocabulary/time.hpp"

#include <array>
#include <charconv>
#include <cstdio>

namespace troika {
namespace {

using namespace std::chrono;

struct Unit {
  std::string_view suffix;
  Duration size;
};
// From small to large; "ms" stands before "m" and "s" so that the longest suffix is tried first.
constexpr std::array<Unit, 5> kUnits{
    {{"ms", milliseconds{1}}, {"s", seconds{1}}, {"m", minutes{1}}, {"h", hours{1}}, {"d", hours{24}}}};

bool digits(std::string_view text, std::size_t at, std::size_t count, int& value) {
  if (at + count > text.size()) return false;
  value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
  }
  return true;
}

}  // namespace

std::string rfc3339(WallTime time) {
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  const Error bad{"read the time", std::string(text),
                  "RFC 3339 in UTC is expected, such as 2026-11-30T20:27:32Z"};
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0;
  if (text.size() < 20 || !digits(text, 0, 4, y) || text[4] != '-' || !digits(text, 5, 2, mo) ||
      text[7] != '-' || !digits(text, 8, 2, d) || (text[10] != 'T' && text[10] != ' ') ||
      !digits(text, 11, 2, h) || text[13] != ':' || !digits(text, 14, 2, mi) || text[16] != ':' ||
      !digits(text, 17, 2, s))
    return bad;
  const year_month_day date{year{y}, month{static_cast<unsigned>(mo)}, day{static_cast<unsigned>(d)}};
  if (!date.ok() || h > 23 || mi > 59 || s > 60) return bad;
  std::size_t at = 19;
  int millis = 0;
  if (text[at] == '.') {
    int weight = 100;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, weight /= 10)
      millis += weight * (text[at] - '0');
  }
  if (text.substr(at) != "Z" && text.substr(at) != "+00:00") return bad;
  return WallTime{sys_days{date}} + hours{h} + minutes{mi} + seconds{s} + milliseconds{millis};
}

Result<Duration> parse_duration(std::string_view text) {
  const Error bad{"read the duration", "\"" + std::string(text) + "\"",
                  "a whole number with a unit is expected: ms, s, m, h or d, such as \"90s\""};
  std::uint32_t number = 0;  // 32 bits of the largest unit still fit into nanoseconds for every unit but d
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return bad;
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : kUnits) {
    if (suffix != unit.suffix) continue;
    if (number > Duration::max() / unit.size) return bad;
    return Duration{unit.size * number};
  }
  return bad;
}

std::string duration_text(Duration duration) {
  for (auto unit = kUnits.rbegin(); unit != kUnits.rend(); ++unit)
    if (duration % unit->size == Duration::zero())
      return std::to_string(duration / unit->size) + std::string(unit->suffix);
  return std::to_string(duration_cast<milliseconds>(duration).count()) + "ms";
}

}  // namespace troika
