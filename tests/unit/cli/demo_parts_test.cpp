// The parts of the demo that judge what was seen.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "cli/demo/kept.hpp"
#include "cli/demo/look.hpp"
#include "cli/demo/requests.hpp"
#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "tests/unit/cli/status_example.hpp"

namespace troika::demo {
namespace {

TEST(DemoLook, AReplicaServesOnlyWithEveryStageReadyInItsOwnEpoch) {
  const auto good = cli::status_example();
  EXPECT_TRUE(serves(good, "a"));
  EXPECT_FALSE(serves(good, "b"));
  EXPECT_FALSE(serves(good, "c"));
  auto bad = good;
  bad.replicas[0].stages[1].epoch = Epoch{1};
  EXPECT_FALSE(serves(bad, "a")) << "another epoch";
  bad = good;
  bad.replicas[0].stages[1].state = "unknown";
  EXPECT_FALSE(serves(bad, "a"));
  bad = good;
  bad.replicas[0].proven = false;
  EXPECT_FALSE(serves(bad, "a"));
}

TEST(DemoLook, RoutedIsTheFirstTargetOfAConnectedGateway) {
  auto status = cli::status_example();
  EXPECT_EQ(routed(status), "a");
  EXPECT_EQ(other(status, "a"), "b");
  status.gateway.connected = false;
  EXPECT_EQ(routed(status), "");
}

TEST(DemoRequests, SamplesOfOneNameAreAddedUp) {
  const std::string page =
      "# HELP x_total Things.\nx_total{code=\"a\"} 2\nx_total{code=\"b\"} 3.5\nx_total_other 9\nx_tot "
      "1\nempty{} \n";
  EXPECT_EQ(*sample(page, "x_total"), 5.5);
  EXPECT_EQ(*sample(page, "x_total_other"), 9);
  EXPECT_FALSE(sample(page, "y").ok());
  EXPECT_FALSE(sample("", "x").ok());
}

TEST(DemoRequests, TheRequestIsInOpenAisForm) {
  const auto request = completion("m", "Hello \"you\"", 7, true);
  const auto json = nlohmann::json::parse(request.body);
  EXPECT_EQ(request.path, "/v1/chat/completions");
  EXPECT_EQ(json["messages"][0]["content"], "Hello \"you\"");
  EXPECT_EQ(json["max_tokens"], 7);
  EXPECT_EQ(json["stream"], true);
}

TEST(DemoStory, TheDocumentTellsWhatWasNotSeen) {
  Story story(platform::now());
  story.step("first");
  story.seen("it");
  EXPECT_EQ(story.document()["verdict"], "cannot_tell");
  story.ended();
  EXPECT_EQ(story.document()["verdict"], "ok");
  story.step("second");
  story.failed({"see", "it", "it is not there"});
  const auto json = story.document();
  EXPECT_EQ(json["verdict"], "error");
  EXPECT_EQ(json["failure"], "cannot see it: it is not there");
  EXPECT_EQ(json["steps"].size(), 2u);
  EXPECT_GE(json["steps"][0]["seen_s"], 0.0);
  EXPECT_EQ(json["steps"][1]["seen_s"], -1.0);
}

TEST(DemoKept, TheLastLinesOfALog) {
  const std::string path = "/tmp/troika-lines-" + platform::random_hex(6);
  std::ofstream(path) << "one\ntwo\nthree\n";
  EXPECT_EQ(last_lines(path, 2), "two\nthree\n");
  EXPECT_EQ(last_lines(path, 9), "one\ntwo\nthree\n");
  std::remove(path.c_str());
  EXPECT_EQ(last_lines(path, 2), "");
}

}  // namespace
}  // namespace troika::demo
