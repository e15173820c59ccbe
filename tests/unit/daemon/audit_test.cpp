// Proofs of the model that an operator asked for, on every node.
#include <gtest/gtest.h>

#include "tests/unit/daemon/leader_rig.hpp"

namespace troika::daemon {
namespace {

using namespace std::chrono_literals;

class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    for (const std::string name : {"n1", "n2", "n3", "n4"})
      agents_[name] = rig_.connect(name);
  }
  protocol::Audit asked(const std::string& node) {
    const auto all = agents_[node].line->all<protocol::Audit>();
    EXPECT_FALSE(all.empty()) << node;
    return all.empty() ? protocol::Audit{} : all.back();
  }
  void answer(const std::string& node, std::vector<std::string> unproven = {}) {
    const auto question = asked(node);
    protocol::VerifyDone proof;
    proof.request = question.request;
    proof.manifest_digest = question.manifest_digest;
    proof.files = 51 - static_cast<std::uint32_t>(unproven.size());
    proof.shards = 46;
    proof.all_proven_but_these = true;
    for (const std::string& file : unproven)
      proof.findings.push_back(finding(Code::HASH_MISMATCH, node, file, "other bytes", "fetch it"));
    proof.unproven = std::move(unproven);
    rig_.say(agents_[node], protocol::AuditDone{proof});
  }
  const protocol::AuditReply& reply() {
    EXPECT_EQ(rig_.audits.size(), 1u);
    static const protocol::AuditReply none;
    return rig_.audits.empty() ? none : rig_.audits.back();
  }
  bool running() { return rig_.leader().audit().has_value(); }

  LeaderRig rig_;
  std::map<std::string, LeaderRig::Agent> agents_;
};

TEST_F(AuditTest, AsksEveryNodeAndTellsWhatAllHaveSaid) {
  ASSERT_TRUE(rig_.leader().begin_audit(true).ok());
  EXPECT_TRUE(asked("n1").deep);
  EXPECT_EQ(asked("n1").term, rig_.leader().cluster().term());
  EXPECT_EQ(asked("n1").manifest.files.size(), 1u);
  answer("n1");
  answer("n2", {"config.json"});
  answer("n3");
  EXPECT_TRUE(running());
  protocol::AuditProgress progress{{asked("n4").request, Bytes{10}, Bytes{40}, 1, 4}};
  rig_.say(agents_["n4"], progress);
  EXPECT_EQ(rig_.leader().audit()->nodes()[3].done, Bytes{10});
  EXPECT_FALSE(rig_.leader().audit()->nodes()[3].answered);
  answer("n4");
  EXPECT_FALSE(running());
  EXPECT_EQ(reply().manifest_digest, asked("n1").manifest_digest);
  ASSERT_EQ(reply().nodes.size(), 4u);
  EXPECT_EQ(reply().nodes[0].files, 51u);
  EXPECT_EQ(reply().nodes[1].verdict, Verdict::Error);
  ASSERT_EQ(reply().findings.size(), 1u);
  EXPECT_EQ(reply().findings[0].node, "n2");
  EXPECT_EQ(reply().findings[0].remedy, "fetch it; proven good copies: n1, n3, n4");
  EXPECT_TRUE(rig_.finished.empty());
  EXPECT_EQ(rig_.view("a").phase, policies::Phase::Stopped) << "no replica is touched by it";
}

TEST_F(AuditTest, ANodeThatIsAwayOrRefusesOrIsLostCannotBeToldOf) {
  rig_.leader().disconnected("n1", agents_["n1"].session);
  ASSERT_TRUE(rig_.leader().begin_audit(false).ok());
  rig_.say(agents_["n2"],
           protocol::Refusal{agents_["n2"].line->last_id("audit"), "BUSY", "a start's proof runs"});
  rig_.leader().disconnected("n3", agents_["n3"].session);
  answer("n4");
  ASSERT_EQ(reply().findings.size(), 3u);
  for (const Finding& one : reply().findings)
    EXPECT_EQ(one.code, Code::CANNOT_TELL);
  EXPECT_EQ(verdict_of(reply().findings), Verdict::CannotTell);
  EXPECT_NE(reply().findings[0].message.find("not connected"), std::string::npos);
  EXPECT_NE(reply().findings[1].message.find("a start's proof runs"), std::string::npos);
  EXPECT_NE(reply().findings[2].message.find("connection ended"), std::string::npos);
}

TEST_F(AuditTest, AnAgentThatCameBackHasForgotten) {
  ASSERT_TRUE(rig_.leader().begin_audit(false).ok());
  agents_["n1"] = rig_.connect("n1");
  for (const char* name : {"n2", "n3", "n4"})
    answer(name);
  EXPECT_EQ(verdict_of(reply().findings), Verdict::CannotTell);
}

TEST_F(AuditTest, ANodeWithoutProgressIsGivenUp) {
  ASSERT_TRUE(rig_.leader().begin_audit(false).ok());
  for (const char* name : {"n1", "n2", "n3"})
    answer(name);
  for (std::uint64_t i = 1; i <= 60; ++i) {  // slow, and alive
    rig_.pass(60s);
    rig_.say(agents_["n4"], protocol::AuditProgress{{asked("n4").request, Bytes{i}, Bytes{1000}, 0, 4}});
  }
  EXPECT_TRUE(running());
  rig_.pass(Audit::kPatience - 1s);
  EXPECT_TRUE(running());
  rig_.say(agents_["n4"], protocol::AuditProgress{{asked("n4").request, Bytes{60}, Bytes{1000}, 0, 4}});
  rig_.pass(1s);
  EXPECT_FALSE(running());
  EXPECT_EQ(verdict_of(reply().findings), Verdict::CannotTell);
}

TEST_F(AuditTest, AnswersOfAnEarlierOneAreVoid) {
  ASSERT_TRUE(rig_.leader().begin_audit(false).ok());
  const auto old = asked("n1");
  rig_.leader().end_audit();
  EXPECT_EQ(agents_["n1"].line->all<protocol::EndAudit>().size(), 1u);
  EXPECT_FALSE(running());
  ASSERT_TRUE(rig_.leader().begin_audit(false).ok());
  protocol::VerifyDone proof;
  proof.request = old.request;
  rig_.say(agents_["n1"], protocol::AuditDone{proof});
  EXPECT_FALSE(rig_.leader().audit()->nodes()[0].answered);
}

TEST_F(AuditTest, ADeeperOneServesBothAndIsNotJoinedByALesser) {
  ASSERT_TRUE(rig_.leader().begin_audit(true).ok());
  EXPECT_TRUE(rig_.leader().begin_audit(false).ok());
  EXPECT_EQ(agents_["n1"].line->all<protocol::Audit>().size(), 1u);
  rig_.leader().end_audit();
  ASSERT_TRUE(rig_.leader().begin_audit(false).ok());
  EXPECT_FALSE(rig_.leader().begin_audit(true).ok());
}

TEST_F(AuditTest, WithoutAManifestNothingIsAsked) {
  ASSERT_TRUE(platform::write_file_durably(rig_.config().model.manifest, "{").ok());
  ASSERT_TRUE(rig_.leader().begin_audit(false).ok());
  EXPECT_TRUE(agents_["n1"].line->all<protocol::Audit>().empty());
  EXPECT_TRUE(rig_.audits.empty()) << "not before the next tick: who asks is not waiting yet";
  rig_.pass(250ms);
  ASSERT_EQ(reply().findings.size(), 1u);
  EXPECT_EQ(reply().findings[0].code, Code::MANIFEST_INVALID);
}

TEST_F(AuditTest, AReplyFitsAMessageHoweverMuchIsWrong) {
  ASSERT_TRUE(rig_.leader().begin_audit(false).ok());
  for (const char* name : {"n1", "n2", "n3", "n4"}) {
    protocol::VerifyDone proof;
    proof.request = asked(name).request;
    for (int i = 0; i < 700; ++i)
      proof.findings.push_back(
          finding(Code::HASH_MISMATCH, name, "file-" + std::to_string(i), std::string(4096, 'x')));
    rig_.say(agents_[name], protocol::AuditDone{proof});
  }
  EXPECT_GT(reply().findings.size(), 400u);
  EXPECT_LT(protocol::encode(reply(), 1).size(), protocol::kMaxMessage.count);
}

// One finding as large as a message may be: the verdict must not go with it.
TEST_F(AuditTest, AReplyKeepsItsVerdictWhateverItsTexts) {
  ASSERT_TRUE(rig_.leader().begin_audit(false).ok());
  for (const char* name : {"n1", "n2", "n3", "n4"}) {
    protocol::VerifyDone proof;
    proof.request = asked(name).request;
    const std::string text(4'000'000, '\1');
    if (name == std::string("n2"))
      proof.findings.push_back(
          {Code::HASH_MISMATCH, Severity::Error, name, text, text, {{"tensor", text}}, text});
    rig_.say(agents_[name], protocol::AuditDone{proof});
  }
  EXPECT_EQ(verdict_of(reply().findings), Verdict::Error);
  EXPECT_LT(protocol::encode(reply(), 1).size(), protocol::kMaxMessage.count);
}

}  // namespace
}  // namespace troika::daemon
