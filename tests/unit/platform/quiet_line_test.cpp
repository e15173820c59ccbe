#include "platform/quiet_line.hpp"

#include <algorithm>

#include "tests/unit/platform/net.hpp"

namespace troika::platform {
namespace {

TEST(QuietLine, AFloodBecomesTwoLines) {
  asio::io_context io;
  const auto line = std::make_shared<QuietLine>(io.get_executor(), 50ms);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i)
    line->say("event " + std::to_string(i));
  run(io, pause(200ms));
  line->say("later");
  line->stop();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
  EXPECT_NE(log.find(": event 0\n"), std::string::npos) << log;
  EXPECT_NE(log.find("and 999 more like it, the last: event 999\n"), std::string::npos) << log;
  EXPECT_NE(log.find(": later\n"), std::string::npos) << log;
}

TEST(QuietLine, StopTellsWhatIsStillCounted) {
  asio::io_context io;
  const auto line = std::make_shared<QuietLine>(io.get_executor());
  testing::internal::CaptureStderr();
  line->say("a");
  line->say("b");
  line->stop();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("and 1 more like it, the last: b"),
            std::string::npos);
}

}  // namespace
}  // namespace troika::platform
