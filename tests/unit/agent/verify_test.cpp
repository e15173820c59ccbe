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

}  // namespace
}  // namespace troika::agent
