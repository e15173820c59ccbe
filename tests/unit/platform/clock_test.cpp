#include "platform/clock.hpp"

#include <gtest/gtest.h>

namespace troika::platform {
namespace {

TEST(Clock, GoesForward) {
  const Instant first = now();
  EXPECT_GE(now(), first);
  EXPECT_GT(first.time_since_epoch(), Duration::zero());
  EXPECT_GT(wall_now(), WallTime{std::chrono::sys_days{std::chrono::year{2024} / 1 / 1}});
}

TEST(Clock, TheBootHasAnId) {
  const std::string id = boot_id();
  EXPECT_EQ(id.size(), 36u) << id;
  EXPECT_EQ(boot_id(), id);
}

}  // namespace
}  // namespace troika::platform
