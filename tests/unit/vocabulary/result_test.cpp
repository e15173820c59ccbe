#include "vocabulary/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace troika {
namespace {

TEST(Error, SaysWhatOnWhatAndWhy) {
  EXPECT_EQ((Error{"open the manifest", "/x", "No such file"}).message(),
            "cannot open the manifest /x: No such file");
  EXPECT_EQ((Error{"go on", "", ""}).message(), "cannot go on");
  EXPECT_EQ(system_error("open", "/x", ENOSPC).message(), "cannot open /x: No space left on device");
}

Result<std::unique_ptr<int>> half(int value) {
  if (value % 2 != 0) return Error{"halve", std::to_string(value), "it is odd"};
  return std::make_unique<int>(value / 2);
}

Result<int> quarter(int value) {
  TROIKA_TRY(first, half(value));
  TROIKA_TRY(second, half(*first));
  return *second;
}

Status even(int value) {
  TROIKA_CHECK(half(value));
  return Done{};
}

TEST(Result, ValuesMoveThroughAndErrorsReturn) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().message(), "cannot halve 3: it is odd");
  EXPECT_TRUE(even(2).ok());
  EXPECT_FALSE(even(3));
  EXPECT_EQ(**half(8), 4);
}

TEST(ResultDeathTest, ReadingTheWrongSideIsABug) {
  EXPECT_DEATH((void)half(3).value(), "broken invariant: ok\\(\\)");
  EXPECT_DEATH((void)half(2).error(), "broken invariant: !ok\\(\\)");
}

}  // namespace
}  // namespace troika
