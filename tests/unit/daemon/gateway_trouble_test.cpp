// A gateway that does not start is an incident with its last words, and one only.
#include "daemon/incidents/gateway_trouble.hpp"

#include <gtest/gtest.h>

#include "tests/unit/platform/folder.hpp"

namespace troika::daemon {
namespace {

constexpr WallTime kNow{std::chrono::milliseconds{1'700'000'000'000}};

class GatewayTroubleTest : public testing::Test {
 protected:
  GatewayTroubleTest()
      : store_(opened(folder_ / "troika.sqlite")), incidents_(store_), trouble_(incidents_) {}
  static Store opened(const std::string& path) {
    auto store = Store::open(path);
    EXPECT_TRUE(store.ok());
    return std::move(store).value();
  }
  static GatewayEnd damaged() {
    return {"with status 2", "open database x/gateway.sqlite: not a database", true, false};
  }
  void end(const GatewayEnd& how) { EXPECT_TRUE(trouble_.ended(how, kNow).ok()); }
  void tick(bool connected) { EXPECT_TRUE(trouble_.tick(connected, kNow).ok()); }
  bool open() {
    const auto open = incidents_.is_open("gateway");
    return open.ok() && *open;
  }
  std::vector<protocol::Incident> all() {
    auto list = incidents_.list({});
    EXPECT_TRUE(list.ok());
    return std::move(list).value();
  }

  platform::Folder folder_;
  Store store_;
  Incidents incidents_;
  GatewayTrouble trouble_;
};

TEST_F(GatewayTroubleTest, ADamagedLedgerIsOneIncidentWithItsLastWords) {
  for (int i = 0; i < 5; ++i) {
    end(damaged());
    tick(false);
  }
  ASSERT_EQ(all().size(), 1u);
  const auto incident = all()[0];
  EXPECT_NE(incident.title.find("gateway.sqlite: not a database"), std::string::npos) << incident.title;
  ASSERT_EQ(incident.findings.size(), 1u);  // the same is said once
  EXPECT_EQ(incident.findings[0].code, Code::START_FAILED);
  EXPECT_NE(incident.findings[0].remedy.find("moved away"), std::string::npos);
  EXPECT_TRUE(open());
  tick(true);
  EXPECT_FALSE(open());
}

TEST_F(GatewayTroubleTest, AnotherReasonIsAdded) {
  end(damaged());
  end({"with status 2", "load the tokenizer: no such file", true, false});
  ASSERT_EQ(all().size(), 1u);
  EXPECT_EQ(all()[0].findings.size(), 2u);
}

TEST_F(GatewayTroubleTest, WhatMayHealIsBorneForSomeStarts) {
  const GatewayEnd taken{"with status 1", "listen on 0.0.0.0:8080: address in use", false, false};
  for (std::uint32_t i = 0; i < GatewayTrouble::kBorne; ++i)
    end(taken);
  EXPECT_FALSE(open());
  end(taken);
  EXPECT_TRUE(open());
}

TEST_F(GatewayTroubleTest, AnEndAfterItRanIsNoTroubleOfStarting) {
  for (int i = 0; i < 5; ++i) {
    tick(true);
    end({"by signal 9", "", false, false});
  }
  for (int i = 0; i < 5; ++i)
    end({"with status 0", "", false, true});
  EXPECT_TRUE(all().empty());
}

TEST_F(GatewayTroubleTest, TheNextLeaderClosesWhatTheLastOneOpened) {
  end(damaged());
  GatewayTrouble next(incidents_);
  EXPECT_TRUE(next.tick(true, kNow).ok());
  EXPECT_FALSE(open());
}

}  // namespace
}  // namespace troika::daemon
