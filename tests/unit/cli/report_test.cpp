#include "cli/report.hpp"

#include <gtest/gtest.h>

#include "protocol/codec.hpp"
#include "tests/unit/cli/status_example.hpp"

namespace troika::cli {
namespace {

Verdict verdict(const protocol::StatusReply& status) {
  return verdict_of(findings_of(status));
}

protocol::StatusReply healthy() {
  auto status = status_example();
  status.replicas.resize(1);
  status.nodes.resize(2);
  return status;
}

TEST(StatusReport, AServingClusterIsOk) {
  EXPECT_EQ(verdict(healthy()), Verdict::Ok);
}

TEST(StatusReport, AReplicaThatShallRunAndFailedIsAnError) {
  auto status = healthy();
  status.replicas[0].phase = "failed";
  ASSERT_EQ(findings_of(status).size(), 1u);
  EXPECT_EQ(findings_of(status)[0].code, Code::REPLICA_FAILED);
  EXPECT_EQ(verdict(status_example()), Verdict::Error) << "its own findings say why";
}

TEST(StatusReport, AReplicaOnItsWayIsAWarning) {
  auto status = healthy();
  status.replicas[0].phase = "loading";
  EXPECT_EQ(verdict(status), Verdict::Warning);
}

TEST(StatusReport, AStoppedReplicaThatShallBeStoppedIsFine) {
  auto status = healthy();
  status.replicas[0].phase = status.replicas[0].desired = "stopped";
  EXPECT_EQ(verdict(status), Verdict::Ok);
}

TEST(StatusReport, ASilentNodeOrGatewayCannotBeTold) {
  auto status = healthy();
  status.nodes[1].connected = false;
  EXPECT_EQ(verdict(status), Verdict::CannotTell);
  status = healthy();
  status.gateway.connected = false;
  EXPECT_EQ(verdict(status), Verdict::CannotTell);
}

TEST(StatusReport, OnlyOpenIncidentsCount) {
  protocol::Incident incident;
  incident.findings = {finding(Code::STAGE_DIED, "n1", "a/0", "ended")};
  incident.closed = "2026-11-30T20:27:41.104Z";
  EXPECT_TRUE(findings_of(std::vector{incident}).empty());
  incident.closed.clear();
  EXPECT_EQ(findings_of(std::vector{incident, incident}).size(), 1u) << "without repeats";
}

TEST(StatusReport, TheJsonHasTheFormOfAllReports) {
  const auto json = report(findings_of(status_example()), protocol::to_json(status_example()));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["verdict"], "error");
  EXPECT_EQ(json["findings"][0]["code"], "HASH_MISMATCH");
  EXPECT_EQ(json["findings"][0]["node"], "n3");
  EXPECT_EQ(json["replicas"][0]["stages"][1]["pid"], 502);
}

TEST(Trouble, AgreesWithTheExitStatus) {
  const Error error{"connect to", "/x.sock", "No such file or directory"};
  const auto verdict = [&](Exit status) { return verdict_of({trouble(error, status)}); };
  EXPECT_EQ(verdict(kUnreachable), Verdict::CannotTell);
  EXPECT_EQ(verdict(kCannotTell), Verdict::CannotTell);
  EXPECT_EQ(verdict(kWrong), Verdict::Error);
  EXPECT_EQ(verdict(kUsage), Verdict::Error);
  const Finding one = trouble(error, kUnreachable, "start it");
  EXPECT_EQ(one.subject, "/x.sock");
  EXPECT_EQ(one.message, error.message());
  EXPECT_EQ(one.remedy, "start it");
}

TEST(StatusReport, TextThatIsNotUtf8DoesNotBreakTheDocument) {
  const std::string text = document(report({finding(Code::STAGE_DIED, "n1", "a/0", "\xff")}, {}));
  EXPECT_TRUE(nlohmann::json::accept(text));
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace troika::cli
