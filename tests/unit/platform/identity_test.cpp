#include <gtest/gtest.h>

#include "platform/tls.hpp"

namespace troika::platform {
namespace {

TEST(Identity, RoundTripsAsAUri) {
  for (const Role role : {Role::Leader, Role::Agent, Role::Operator}) {
    const Identity identity{"lab-2", role, "spark-1"};
    const auto back = parse_identity_uri(uri(identity));
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(*back, identity);
    const auto again = parse_role(name(role));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, role);
  }
}

TEST(Identity, OtherFormsAreRefused) {
  for (const char* bad :
       {"", "troika://", "troika://lab", "troika://lab/agent", "troika://lab/agent/", "troika:///agent/x",
        "troika://lab/local/x", "troika://lab/root/x", "troika://lab/agent/x/y", "troika://Lab/agent/x",
        "http://lab/agent/x", "troika://lab/agent/../x", "troika://lab/agent/x ", "TROIKA://lab/agent/x"})
    EXPECT_FALSE(parse_identity_uri(bad).ok()) << bad;
  EXPECT_FALSE(parse_identity_uri(std::string_view("troika://lab/agent/x\0y", 22)).ok());
}

// Local is what a Unix socket's peer is; no certificate may claim it.
TEST(Identity, LocalIsNoRoleOfACertificate) {
  EXPECT_FALSE(parse_role("local").ok());
}

}  // namespace
}  // namespace troika::platform
