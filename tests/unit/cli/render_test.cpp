#include "cli/render.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troika::cli {
namespace {

const Style kPlain{};

protocol::Incident stage_died() {
  protocol::Incident incident{
      7, "2026-11-30T20:27:32.004Z", "2026-11-30T20:27:41.104Z", "replica a", "stage a/1 was killed", {}, {}};
  incident.findings.push_back(finding(Code::STAGE_DIED, "n2", "a/1", "ended by signal 9",
                                      "nothing: restarted once",
                                      {{"signal", std::int64_t{9}}, {"requested", false}}));
  incident.actions = {"20:27:32 gate closed", "20:27:33 stopped a/0 and a/2 (epoch 1)"};
  return incident;
}

TEST(Render, DurationsHaveTwoUnitsAtTheMost) {
  EXPECT_EQ(seconds_text(0.44), "0.4s");
  EXPECT_EQ(seconds_text(9.96), "10s");
  EXPECT_EQ(seconds_text(190), "3m10s");
  EXPECT_EQ(seconds_text(18120), "5h02m");
  EXPECT_EQ(seconds_text(183600), "2d03h");
  EXPECT_EQ(seconds_text(-1), "unknown");
  EXPECT_EQ(seconds_text(std::numeric_limits<double>::quiet_NaN()), "unknown");
}

TEST(Render, BytesHaveBinaryUnits) {
  EXPECT_EQ(bytes_text(Bytes{0}), "0 B");
  EXPECT_EQ(bytes_text(Bytes{1023}), "1023 B");
  EXPECT_EQ(bytes_text(Bytes{3565158}), "3.4 MiB");
  EXPECT_EQ(share_text(Bytes{13207024435}, Bytes{130673928602}), "12.3 of 121.7 GiB");
  EXPECT_EQ(share_text(Bytes{5}, Bytes{10}), "5 of 10 B");
}

TEST(Render, AFindingSaysWhatWhereAndWhatToDo) {
  const Finding bad = finding(Code::HASH_MISMATCH, "n2", "model-00007-of-00046.safetensors",
                              "SHA-256 differs from the manifest", "copy the file again");
  EXPECT_EQ(render_finding(bad, kPlain),
            "    error HASH_MISMATCH n2 model-00007-of-00046.safetensors: SHA-256 differs from the manifest\n"
            "      do: copy the file again\n");
}

TEST(Render, AFindingFitsTheTerminal) {
  const Finding bad =
      finding(Code::HASH_MISMATCH, "n2", "shard", "SHA-256 differs from the manifest", "copy it");
  EXPECT_EQ(render_finding(bad, {false, 40}),
            "    error HASH_MISMATCH n2 shard:\n"
            "    SHA-256 differs from the manifest\n"
            "      do: copy it\n");
}

TEST(Render, IncidentsAreOneLineEach) {
  auto open = stage_died();
  open.id = 12;
  open.closed.clear();
  open.subject = "node n3";
  open.title = "not\nheard";
  open.findings.push_back(open.findings.front());
  EXPECT_EQ(render_incidents({stage_died(), open}, kPlain),
            "ID  OPENED                    LASTED  SUBJECT    CODES       TITLE\n"
            "7   2026-11-30T20:27:32.004Z  9.1s    replica a  STAGE_DIED  stage a/1 was killed\n"
            "12  2026-11-30T20:27:32.004Z  open    node n3    STAGE_DIED  not\\x0aheard\n");
  EXPECT_EQ(render_incidents({}, kPlain), "no incidents\n");
}

TEST(Render, OneIncidentInFull) {
  EXPECT_EQ(render_incident(stage_died(), kPlain),
            "incident 7: stage a/1 was killed\n"
            "  subject  replica a\n"
            "  opened   2026-11-30T20:27:32.004Z\n"
            "  closed   2026-11-30T20:27:41.104Z (after 9.1s)\n"
            "  findings\n"
            "    error STAGE_DIED n2 a/1: ended by signal 9\n"
            "      do: nothing: restarted once\n"
            "      seen: signal = 9, requested = no\n"
            "  actions\n"
            "    20:27:32 gate closed\n"
            "    20:27:33 stopped a/0 and a/2 (epoch 1)\n");
}

protocol::AuditedNode audited(const std::string& node, Verdict verdict) {
  protocol::AuditedNode one;
  one.node = node;
  one.answered = true;
  one.verdict = verdict;
  one.files = 51;
  one.shards = 46;
  one.tensors = 1611;
  one.bytes = Bytes{3u << 30};
  one.seconds = 2;
  return one;
}

TEST(Render, AProofOfEveryNode) {
  protocol::AuditReply reply;
  reply.nodes = {audited("n1", Verdict::Ok), audited("n2\n", Verdict::Error)};
  reply.nodes[0].cached = 51;
  reply.findings = {
      finding(Code::HASH_MISMATCH, "n2", "x", "other bytes", "fetch it; proven good copies: n1")};
  EXPECT_EQ(render_audit(reply, kPlain),
            "    error HASH_MISMATCH n2 x: other bytes\n"
            "      do: fetch it; proven good copies: n1\n"
            "NODE    VERDICT  FILES  SHARDS  TENSORS  READ     UNCHANGED  TOOK\n"
            "n1      ok       51     46      1611     3.0 GiB  51         2.0s\n"
            "n2\\x0a  error    51     46      1611     3.0 GiB  0          2.0s\n"
            "error: 1 of 2 nodes have proven the model\n");
}

TEST(Render, HowFarEachNodeIs) {
  protocol::AuditStatus status;
  status.nodes = {audited("n1", Verdict::Ok), {}, {}};
  status.nodes[1].node = "n2";
  status.nodes[2].node = "n3";
  status.nodes[2].done = Bytes{150'000'000'000};
  status.nodes[2].total = Bytes{168'000'000'000};
  EXPECT_EQ(each_node(status), "; n1 done, n2 begins, n3 89%");
  EXPECT_EQ(each_node({}), "");
}

TEST(Incidents, HowAStageEndedIsSaidInWords) {
  const auto seen = [](Evidence evidence) {
    protocol::Incident incident;
    incident.findings.push_back(finding(Code::STAGE_DIED, "n2", "a/1", "m", "", std::move(evidence)));
    const std::string text = render_incident(incident, Style{});
    const std::size_t from = text.find("seen: ");
    return from == std::string::npos ? std::string() : text.substr(from, text.find('\n', from) - from);
  };
  const auto ending = [](int code, int signal, bool known) {
    return Evidence{{"code", std::int64_t{code}}, {"signal", std::int64_t{signal}}, {"known", known}};
  };
  EXPECT_EQ(seen(ending(0, 9, true)), "seen: ended by signal 9 (SIGKILL)");
  EXPECT_EQ(seen(ending(0, 12, true)), "seen: ended by signal 12 (SIGUSR2)");
  EXPECT_EQ(seen(ending(3, 0, true)), "seen: ended with code 3");
  EXPECT_EQ(seen(ending(0, 0, false)), "seen: nobody saw how it ended");
  Evidence more = ending(0, 64, true);
  more.emplace_back("follows", true);
  EXPECT_EQ(seen(more), "seen: ended by signal 64, follows = yes");
}

}  // namespace
}  // namespace troika::cli
