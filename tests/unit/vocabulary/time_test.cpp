#include "vocabulary/time.hpp"

#include <gtest/gtest.h>

namespace troika {
namespace {

using namespace std::chrono;

TEST(Time, Rfc3339RoundTrips) {
  for (const char* text :
       {"2026-11-30T20:27:32.004Z", "1970-01-01T00:00:00.000Z", "2024-02-29T23:59:59.999Z"}) {
    const auto time = parse_rfc3339(text);
    ASSERT_TRUE(time.ok()) << text;
    EXPECT_EQ(rfc3339(*time), text);
  }
  EXPECT_EQ(rfc3339(*parse_rfc3339("2026-11-30 20:27:32Z")), "2026-11-30T20:27:32.000Z");
  EXPECT_EQ(rfc3339(*parse_rfc3339("2026-11-30T20:27:32.5+00:00")), "2026-11-30T20:27:32.500Z");
  EXPECT_EQ(rfc3339(*parse_rfc3339("2026-11-30T20:27:32.123456789Z")), "2026-11-30T20:27:32.123Z");
}

TEST(Time, OtherTimesAreRefused) {
  for (const char* bad :
       {"", "2026-11-30", "2026-11-30T20:27:32", "2026-11-30T20:27:32+01:00", "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T20:60:00Z", "2026-11-30T20:27:61Z",
        "2026-11-30T20:27:32Zx", "2026-11-3OT20:27:32Z", "yesterday, twenty past"})
    EXPECT_FALSE(parse_rfc3339(bad).ok()) << bad;
}

TEST(Time, DurationsRoundTrip) {
  const std::pair<const char*, Duration> kCases[] = {
      {"0d", 0s}, {"250ms", 250ms},      {"90s", 90s},      {"30m", 30min},
      {"2h", 2h}, {"7d", hours{7 * 24}}, {"1500ms", 1500ms}};
  for (const auto& [text, duration] : kCases) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, duration);
    EXPECT_EQ(duration_text(duration), text);
  }
  EXPECT_EQ(duration_text(60s), "1m");
  EXPECT_EQ(*parse_duration("60s"), *parse_duration("1m"));
}

TEST(Time, OtherDurationsAreRefused) {
  for (const char* bad :
       {"", "s", "10", "10 s", "1.5h", "-1s", "+1s", "10sec", "10S", "99999999999s", "4294967295d"})
    EXPECT_FALSE(parse_duration(bad).ok()) << bad;
}

}  // namespace
}  // namespace troika
