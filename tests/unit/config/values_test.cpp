// Addresses, sizes, and which file is which.
#include <gtest/gtest.h>

#include "config/cluster.hpp"
#include "config/kind.hpp"
#include "tests/unit/config/example.hpp"

namespace troika::config {
namespace {

TEST(Endpoint, RoundTrips) {
  for (const char* good : {"10.0.0.1:80", "host:1", "a-b.example.org:65535", "[::1]:443", "[fe80::1]:7"}) {
    const auto endpoint = parse_endpoint(good);
    ASSERT_TRUE(endpoint.ok()) << good;
    EXPECT_EQ(text(*endpoint), good);
  }
}

TEST(Endpoint, OtherFormsAreRefused) {
  for (const char* bad : {"",
                          ":",
                          "host",
                          "host:",
                          ":80",
                          "host:0",
                          "host:65536",
                          "host:-1",
                          "host:+1",
                          "host: 80",
                          "host:80 ",
                          "ho st:80",
                          "::1:80",
                          "[::1:80",
                          "[10.0.0.1]:80",
                          "[x]:80",
                          "1.2.3:80",
                          "1.2.3.4.5:80",
                          "256.1.1.1:80",
                          "-x:80",
                          "http://host:80",
                          "host:80/"})
    EXPECT_FALSE(parse_endpoint(bad).ok()) << bad;
}

TEST(Kind, IsTheFirstTableThatTells) {
  EXPECT_EQ(guess_kind(kCluster), FileKind::Cluster);
  EXPECT_EQ(guess_kind(kAgent), FileKind::Agent);
  EXPECT_EQ(guess_kind("x = \n[node] # a comment\r\n"), FileKind::Agent);
  EXPECT_EQ(guess_kind("  [cluster]\t"), FileKind::Cluster);
  EXPECT_EQ(guess_kind("[[node]]\n"), std::nullopt);
  EXPECT_EQ(guess_kind(""), std::nullopt);
}

TEST(Problem, ReadsAsALineForPeople) {
  EXPECT_EQ((Problem{"cluster.toml", 12, 8, "admission.rate", "\"fast\"", "a number above 0 is expected", ""})
                .message(),
            "cluster.toml:12:8: admission.rate = \"fast\": a number above 0 is expected");
  EXPECT_EQ((Problem{"f", 0, 0, "a.b", "", "a name is expected", ""}).message(),
            "f: a.b is missing: a name is expected");
}

}  // namespace
}  // namespace troika::config
