// Wall time and durations as text. Pure.
#pragma once

#include <string>
#include <string_view>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika {

// RFC 3339 in UTC with milliseconds: "2026-11-30T20:27:32.004Z".
std::string rfc3339(WallTime time);
Result<WallTime> parse_rfc3339(std::string_view text);

// "250ms", "90s", "30m", "2h", "7d": a whole number and a unit.
Result<Duration> parse_duration(std::string_view text);
// The largest unit that holds the value exactly, in the form that parse_duration reads.
std::string duration_text(Duration duration);

}  // namespace troika
