// The proof of a node before a start.
#include "agent/model/digest.hpp"
#include "tests/unit/agent/rig.hpp"

namespace troika::agent {
namespace {

class VerifyTest : public AgentTest {
 protected:
  VerifyTest() {
    put("config.json", "{\"architectures\":[\"DeepseekV3ForCausalLM\"]}");
    // Case A01.
    std::string shard("\x35\0\0\0\0\0\0\0", 8);
    shard += R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
    shard += std::string("\x01\x02\x03\x04", 4);
    put("model-00001-of-00001.safetensors", shard);
    put("model.safetensors.index.json",
        R"({"metadata":{"total_size":4},"weight_map":{"a":"model-00001-of-00001.safetensors"}})");
    manifest_.model = "lab-model";
    manifest_.revision = "r1";
  }
  void put(const std::string& name, const std::string& content) {
    ASSERT_TRUE(platform::write_file_durably(folder_ / ("model/" + name), content).ok());
    manifest_.files[name] = {Bytes{content.size()}, model::sha256_hex(content), ""};
  }
  protocol::VerifyDone verify() {
    verified_.reset();
    protocol::Verify message{
        ++request_, term_, "a", Rank{0}, "native", manifest_, model::manifest_digest(manifest_)};
    if (engine_ != "") message.engine = engine_;
    send(message);
    await([&] { return verified_ && verified_->request == request_; }, "the verification's end");
    return verified_ ? *verified_ : protocol::VerifyDone{};
  }

  protocol::Audit question(bool deep = false) {
    return {++request_, term_, deep, manifest_, model::manifest_digest(manifest_)};
  }
  protocol::VerifyDone audit(bool deep = false) {
    audited_.reset();
    send(question(deep));
    await([&] { return audited_ && audited_->request == request_; }, "the audit's end");
    return audited_ ? *audited_ : protocol::VerifyDone{};
  }
  // A file that takes minutes to read, without a byte on the disk.
  void put_endless() {
    const std::string path = folder_ / "model/endless";
    ASSERT_TRUE(platform::write_file_durably(path, "").ok());
    constexpr off_t kMinutes = off_t{1} << 40;
    ASSERT_EQ(::truncate(path.c_str(), kMinutes), 0);
    manifest_.files["endless"] = {Bytes{std::uint64_t{kMinutes}}, std::string(64, '0'), ""};
  }
  void forget_endless() { manifest_.files.erase("endless"); }

  protocol::Manifest manifest_;
  std::string engine_;
  std::uint64_t request_ = 0;
};

TEST_F(VerifyTest, ProvesAGoodTree) {
  connect();
  const auto done = verify();
  EXPECT_EQ(verdict_of(done.findings), Verdict::Ok);
  for (const auto& f : done.findings)
    EXPECT_NE(f.severity, Severity::Error) << f.message;
  EXPECT_EQ(done.files, 3u);
  EXPECT_EQ(done.shards, 1u);
  EXPECT_EQ(done.tensors, 1u);
  EXPECT_EQ(done.manifest_digest, model::manifest_digest(manifest_));
  EXPECT_GT(progresses_, 0u);
}

TEST_F(VerifyTest, NamesNodeAndShardOfAFlippedByte) {
  connect();
  std::fstream file{folder_ / "model/model-00001-of-00001.safetensors",
                    std::ios::in | std::ios::out | std::ios::binary};
  file.seekp(-1, std::ios::end);
  file.put('\x05');
  file.close();
  const auto done = verify();
  EXPECT_EQ(verdict_of(done.findings), Verdict::Error);
  const auto bad = std::find_if(done.findings.begin(), done.findings.end(),
                                [](const Finding& f) { return f.code == Code::HASH_MISMATCH; });
  ASSERT_NE(bad, done.findings.end());
  EXPECT_EQ(bad->node, node_);
  EXPECT_EQ(bad->subject, "model-00001-of-00001.safetensors");
}

TEST_F(VerifyTest, ChecksProfilePortsAndLeftovers) {
  program_ = folder_ / "no-such-engine";
  connect();
  EXPECT_TRUE(has(verify().findings, Code::START_FAILED));
  engine_ = "vllm";
  EXPECT_TRUE(has(verify().findings, Code::START_FAILED));
}

TEST_F(VerifyTest, SeesAPortThatIsTakenAndAStageThatIsHeld) {
  connect();
  {
    asio::ip::tcp::acceptor foreign{io_, {asio::ip::make_address("127.0.0.1"), link_}};
    EXPECT_TRUE(has(verify().findings, Code::PORT_FOREIGN));
  }
  start_and_await_ready();
  const auto held = verify();
  EXPECT_TRUE(has(held.findings, Code::NOT_RELEASED));
  EXPECT_FALSE(has(held.findings, Code::ORPHAN)) << "its processes are held";
}

TEST_F(VerifyTest, SeesAProcessOfAStageThatIsOver) {
  connect();
  const auto child =
      platform::spawn(platform::plan_of({"/bin/sleep", "300"}, {"TROIKA_STAGE=lab/" + node_ + "/a/0/3"}));
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE(platform::eventually([&] { return marked().size() == 1; }));
  EXPECT_TRUE(has(verify().findings, Code::ORPHAN));
  (void)platform::signal_process(child->id, SIGKILL);
  platform::wait_status(*child);
  EXPECT_FALSE(has(verify().findings, Code::ORPHAN));
}

TEST_F(VerifyTest, AManifestThatIsNotTheLeadersIsSaid) {
  connect();
  protocol::Verify message{1, term_, "a", Rank{0}, "native", manifest_, std::string(64, '0')};
  send(message);
  await([&] { return verified_.has_value(); }, "the verification's end");
  EXPECT_TRUE(has(verified_->findings, Code::MANIFEST_DIFFERS));
}

TEST_F(VerifyTest, AnAuditProvesTheModelAlone) {
  program_ = folder_ / "no-such-engine";
  connect();
  const auto good = audit();
  EXPECT_EQ(good.files, 3u);
  EXPECT_EQ(good.manifest_digest, model::manifest_digest(manifest_));
  EXPECT_TRUE(good.findings.empty()) << good.findings[0].message;
  EXPECT_TRUE(good.unproven.empty());
  EXPECT_TRUE(good.all_proven_but_these);
  EXPECT_EQ(audit(true).cached, 0u);
}

TEST_F(VerifyTest, AnAuditNamesWhatIsNotProven) {
  connect();
  ASSERT_TRUE(platform::write_file_durably(folder_ / "model/config.json", "{}").ok());
  const auto done = audit();
  EXPECT_EQ(verdict_of(done.findings), Verdict::Error);
  EXPECT_EQ(done.unproven, std::vector<std::string>{"config.json"});
  EXPECT_TRUE(done.all_proven_but_these);
  EXPECT_EQ(verify().unproven, std::vector<std::string>{"config.json"});
}

TEST_F(VerifyTest, AnAuditGetsOutOfAStartsWay) {
  connect();
  put_endless();
  const auto asked = question();
  send(asked);
  forget_endless();
  const auto done = verify();
  EXPECT_EQ(done.files, 3u);
  ASSERT_TRUE(audited_.has_value()) << "it is told, and before the start's proof begins";
  EXPECT_EQ(audited_->request, asked.request);
  EXPECT_EQ(verdict_of(audited_->findings), Verdict::CannotTell);
  EXPECT_FALSE(audited_->all_proven_but_these);
}

TEST_F(VerifyTest, AnAuditDoesNotDisturbAStartsProof) {
  connect();
  put_endless();
  protocol::Verify message{
      ++request_, term_, "a", Rank{0}, "native", manifest_, model::manifest_digest(manifest_)};
  send(message);
  send(question());
  await([&] { return !refusals_.empty(); }, "a refusal");
  ASSERT_EQ(refusals_.size(), 1u);
  EXPECT_EQ(refusals_[0].code, "BUSY");
  EXPECT_FALSE(audited_.has_value());
  refusals_.clear();
  forget_endless();
  EXPECT_EQ(verify().files, 3u);
}

TEST_F(VerifyTest, AnAuditEndsWhenNobodyWaits) {
  connect();
  put_endless();
  const auto asked = question();
  send(asked);
  send(protocol::EndAudit{asked.request + 1});  // another one's
  send(protocol::EndAudit{asked.request});
  forget_endless();
  EXPECT_EQ(audit().files, 3u) << "the endless one is over";
}

TEST_F(VerifyTest, AnAuditOfAnEarlierTermIsRefused) {
  connect();
  auto asked = question();
  asked.term = Term{term_.count - 1};
  send(asked);
  await([&] { return !refusals_.empty(); }, "a refusal");
  EXPECT_EQ(refusals_[0].code, "STALE_TERM");
  refusals_.clear();
}

}  // namespace
}  // namespace troika::agent
