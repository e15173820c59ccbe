// Which node has a good copy of a bad file (modes 1 and 8).
#include "policies/copies.hpp"

#include <gtest/gtest.h>

namespace troika::policies {
namespace {

const std::string kDigest(64, 'd');

NodeCopies node(std::string name, std::vector<std::string> unproven = {}) {
  return {std::move(name), kDigest, std::move(unproven), true};
}
Finding bad(const std::string& node, const std::string& file) {
  return finding(Code::HASH_MISMATCH, node, file, "other bytes", "fetch it again");
}
// What is told of the only finding; "-": nothing.
std::string told(Finding one, const std::vector<NodeCopies>& nodes) {
  std::vector<Finding> findings{std::move(one)};
  const Finding before = findings[0];
  tell_good_copies(findings, nodes);
  if (findings[0] == before) return "-";
  EXPECT_EQ(findings[0].evidence.back().first, "good_copies");
  const auto good = std::get<std::string>(findings[0].evidence.back().second);
  EXPECT_EQ(findings[0].remedy, "fetch it again; proven good copies: " + good);
  return good;
}

TEST(GoodCopies, AreThoseOfTheOtherNodes) {
  EXPECT_EQ(told(bad("n1", "x"), {node("n1", {"x"}), node("n2"), node("n3", {"y"})}), "n2, n3");
  EXPECT_EQ(told(bad("n1", "x"), {node("n1", {"x"}), node("n2", {"x"}), node("n3")}), "n3");
}

TEST(GoodCopies, NothingIsSaidWhereThereIsNone) {
  EXPECT_EQ(told(bad("n1", "x"), {node("n1", {"x"})}), "-");
  EXPECT_EQ(told(bad("n1", "x"), {}), "-");
}

TEST(GoodCopies, BadEverywhereIsSaidOnlyWhereEveryNodeProvedItSo) {
  const auto remedy = [](std::vector<NodeCopies> nodes) {
    std::vector<Finding> findings{bad("n1", "x")};
    tell_good_copies(findings, nodes);
    return findings[0].remedy;
  };
  EXPECT_NE(remedy({node("n1", {"x"}), node("n2", {"x"})}).find("no node has a good copy"),
            std::string::npos);
  NodeCopies silent = node("n3");
  silent.others_proven = false;
  for (const auto& nodes : {std::vector{node("n1", {"x"}), node("n2", {"x"}), silent},
                            std::vector{node("n1", {"x"})}, std::vector{node("n1", {"x"}), node("n2")}})
    EXPECT_EQ(remedy(nodes).find("no node"), std::string::npos);
}

TEST(GoodCopies, OnlyProofsOfTheSameManifestCount) {
  NodeCopies other = node("n2");
  other.manifest_digest = std::string(64, 'e');
  EXPECT_EQ(told(bad("n1", "x"), {node("n1", {"x"}), other}), "-");
}

TEST(GoodCopies, ANodeThatProvedNothingHasNone) {
  NodeCopies silent = node("n2");
  silent.others_proven = false;
  EXPECT_EQ(told(bad("n1", "x"), {node("n1", {"x"}), silent, NodeCopies{}}), "-");
}

TEST(GoodCopies, OnlyOfFilesOfTheManifest) {
  EXPECT_EQ(told(finding(Code::EXTRA_FILE, "n1", "stray", "a stray", "fetch it again"),
                 {node("n1", {"x"}), node("n2")}),
            "-");
  EXPECT_EQ(told(finding(Code::CANNOT_TELL, "n1", "x", "not read", "fetch it again"),
                 {node("n1", {"x"}), node("n2")}),
            "-")
      << "its own copy may be as good";
  EXPECT_EQ(told(bad("", "x"), {node("n1", {"x"}), node("n2")}), "-");
}

}  // namespace
}  // namespace troika::policies
