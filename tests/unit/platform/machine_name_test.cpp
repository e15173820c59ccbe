#include "platform/machine_name.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

namespace troika::platform {
namespace {

std::string name_of(const char* what) {
  return "troika-test/" + std::string(what) + "/" + std::to_string(::getpid());
}

TEST(MachineName, OneHolderAtATimeAndItsPidIsTold) {
  const std::string name = name_of("one");
  std::optional<MachineName> held{MachineName::take(name).value()};
  for (int i = 0; i < 5; ++i) {  // however often it is asked
    const auto second = MachineName::take(name);
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.error().message().find("held by pid " + std::to_string(::getpid())), std::string::npos)
        << second.error().message();
  }
  EXPECT_TRUE(MachineName::take(name + "x").ok()) << "another name";
  held.reset();
  EXPECT_TRUE(MachineName::take(name).ok());
}

TEST(MachineName, IsFreeAgainAfterSigkill) {
  const std::string name = name_of("killed");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = MachineName::take(name);
    const char said = held.ok() ? 'y' : 'n';
    (void)!::write(ready[1], &said, 1);
    while (true)
      ::pause();
  }
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  EXPECT_FALSE(MachineName::take(name).ok());
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(MachineName::take(name).ok());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(MachineName, LongNamesAreToldApartToTheirEnds) {
  for (const std::size_t length : {99u, 100u, 101u, 500u}) {
    const std::string name = name_of("long") + std::string(length - name_of("long").size(), 'x');
    const auto held = MachineName::take(name);
    EXPECT_TRUE(held.ok()) << length;
    EXPECT_FALSE(MachineName::take(name).ok()) << length;
    EXPECT_TRUE(MachineName::take(name.substr(0, length - 1) + "y").ok()) << length;
  }
}

}  // namespace
}  // namespace troika::platform
