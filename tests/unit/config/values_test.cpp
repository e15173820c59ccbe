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

TEST(Kind, AByteOrderMarkHidesNothing) {
  EXPECT_EQ(guess_kind("\xEF\xBB\xBF" + std::string(kCluster)), FileKind::Cluster);
  EXPECT_EQ(tell_kind("\xEF\xBB\xBF[node]\n", "f").config, FileKind::Agent);
}

TEST(Kind, IsToldOfTablesThatHaveNoLine) {
  EXPECT_EQ(tell_kind("cluster = { name = \"x\" }\n", "f").config, FileKind::Cluster);
  EXPECT_EQ(tell_kind("node.name = \"x\"\n", "f").config, FileKind::Agent);
}

// What is no TOML is told by its line, not by what it does not have.
TEST(Kind, ATextThatIsNotTomlHasItsLine) {
  using namespace std::string_literals;
  const auto told = [](const std::string& text) {
    const auto kind = tell_kind(text, "f");
    return kind.problems.size() == 1 ? kind.problems[0].message() : std::string("no single problem");
  };
  EXPECT_EQ(told("\xFF\xFE[\0c\0l\0"s), "f:1: not TOML: UTF-8 is expected, this is UTF-16");
  for (const std::string& text : {"[\0c\0l\0u\0"s, "\x80\x81\x82 random"s, "x = "s + std::string(1000, '[')})
    EXPECT_TRUE(told(text).starts_with("f:1")) << told(text);
  EXPECT_TRUE(told("a = 1\nb = \n").starts_with("f:2:")) << told("a = 1\nb = \n");
  EXPECT_EQ(
      told("a = 1\n"),
      "f: a table [cluster] (of a leader's file) or [node] (of an agent's) is expected; --kind cluster or "
      "--kind agent says which is meant");
}

TEST(Collide, IsAboutPortsAndTheAddressesBehindThem) {
  const auto both = [](const char* a, const char* b) {
    return collide(*parse_endpoint(a), *parse_endpoint(b)) && collide(*parse_endpoint(b), *parse_endpoint(a));
  };
  EXPECT_TRUE(both("10.0.0.1:1", "10.0.0.1:1"));
  EXPECT_TRUE(both("0.0.0.0:1", "127.0.0.1:1"));
  EXPECT_TRUE(both("[::]:1", "127.0.0.1:1"));
  EXPECT_TRUE(both("[::]:1", "[::1]:1"));
  EXPECT_TRUE(both("localhost:1", "127.0.0.1:1"));
  EXPECT_FALSE(both("0.0.0.0:1", "[::1]:1"));
  EXPECT_FALSE(both("10.0.0.1:1", "10.0.0.2:1"));
  EXPECT_FALSE(both("0.0.0.0:1", "0.0.0.0:2"));
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
