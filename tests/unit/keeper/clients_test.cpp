// Whoever talks to the socket cannot make the keeper grow, hang or forget its stage.
#include <list>

#include "tests/unit/keeper/rig.hpp"

namespace troika::keeper {
namespace {

class KeeperClients : public KeeperTest {
 protected:
  void SetUp() override { ASSERT_EQ(launch("echo up; sleep 60"), 0) << words(); }
};

TEST_F(KeeperClients, AnswersWhatItDoesNotUnderstand) {
  Client client{directory()};
  EXPECT_EQ(client.ask("hello").substr(0, 6), "error ");
  EXPECT_EQ(client.ask("stop").substr(0, 6), "error ");
  EXPECT_EQ(client.ask("stop 5x").substr(0, 6), "error ");
  EXPECT_EQ(client.ask("stop -1").substr(0, 6), "error ");
  EXPECT_EQ(client.ask("forget").substr(0, 6), "error ") << "its stage runs";
  EXPECT_NE(client.ask("status").find("state=running"), std::string::npos);
}

TEST_F(KeeperClients, ClosesOnLinesWithoutEnd) {
  Client client{directory()};
  client.send(std::string(100'000, 'x'));
  EXPECT_FALSE(client.line());
  Client next{directory()};
  EXPECT_NE(next.ask("status").find("state=running"), std::string::npos);
}

TEST_F(KeeperClients, HoldsOnlySoMany) {
  std::list<Client> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(directory());
    EXPECT_NE(clients.back().ask("status").find("state=running"), std::string::npos);
  }
  Client one_more{directory()};
  EXPECT_EQ(one_more.ask("status"), "closed");
  clients.pop_front();
  EXPECT_TRUE(eventually([&] { return Client{directory()}.ask("status") != "closed"; }));
}

TEST_F(KeeperClients, ShowsLateComersTheLastLines) {
  EXPECT_TRUE(eventually([&] { return log().find("up") != std::string::npos; }));
  Client client{directory()};
  EXPECT_EQ(client.ask("follow"), "ok");
  EXPECT_TRUE(client.line_with("log up"));
  EXPECT_TRUE(client.line_with("state=running"));
}

class KeeperFlood : public KeeperTest {};

TEST_F(KeeperFlood, ASlowFollowerIsToldOfTheGap) {
  spec_.log_limit = Bytes{1u << 20};
  const std::string go = folder_ / "go";
  ASSERT_EQ(launch("until [ -e " + go + " ]; do sleep 0.02; done; seq 1 300000; echo last; sleep 60"), 0);
  Client client{directory()};
  EXPECT_EQ(client.ask("follow"), "ok");
  ASSERT_TRUE(platform::write_file_durably(go, "").ok());
  EXPECT_TRUE(eventually([&] { return log().find("\nlast\n") != std::string::npos; }))
      << "the stage does not wait for it";
  EXPECT_TRUE(client.line_with("gap "));
  EXPECT_TRUE(client.line_with("log last")) << "and gets the last lines after it";
  EXPECT_NE(Client{directory()}.ask("status").find("state=running"), std::string::npos);
}

}  // namespace
}  // namespace troika::keeper
