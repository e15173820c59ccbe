#include "platform/log.hpp"

#include <gtest/gtest.h>

namespace troika::platform {
namespace {

std::string logged(std::string_view text) {
  testing::internal::CaptureStderr();
  log(text);
  return testing::internal::GetCapturedStderr();
}

TEST(Log, ALineHasTimeAndName) {
  set_log_name("troika-agent[spark-1]");
  const std::string line = logged("hello");
  ASSERT_GT(line.size(), 24u);
  EXPECT_EQ(line[10], 'T');
  EXPECT_EQ(line[23], 'Z');
  EXPECT_EQ(line.substr(24), " troika-agent[spark-1]: hello\n");
}

// Text from outside reaches terminals: it must not end a line or move a cursor.
TEST(Log, ControlCharactersAreWrittenOut) {
  set_log_name("x");
  EXPECT_EQ(logged("a\nb\r\x1b[2J\x7f\t\xc2\x9b"
                   "c")
                .substr(24),
            " x: a\\x0ab\\x0d\\x1b[2J\\x7f\\x09\\xc2\\x9bc\n");
  EXPECT_EQ(logged("Zürich 北京").substr(24), " x: Zürich 北京\n");
}

TEST(Log, ALongLineIsCut) {
  const std::string line = logged(std::string(100'000, 'y'));
  EXPECT_LE(line.size(), 4096u);
  EXPECT_TRUE(line.ends_with(" [cut]\n"));
}

}  // namespace
}  // namespace troika::platform
