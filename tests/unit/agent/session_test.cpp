// The agent's side of the protocol: fences, silence, what it does not understand.
#include "tests/unit/agent/rig.hpp"

namespace troika::agent {
namespace {

TEST_F(AgentTest, RedialsALeaderThatFallsSilent) {
  acknowledge_heartbeats_ = false;
  connect();
  const auto first = hello_->session;
  await([&] { return hello_->session != first; }, "another connection");
  EXPECT_NE(agent_log().find("does not answer heartbeats"), std::string::npos);
}

TEST_F(AgentTest, RefusesALeaderOfAnEarlierTerm) {
  term_ = Term{9};
  connect();
  await([&] { return heartbeats_ > 2; }, "heartbeats");
  const auto first = hello_->session;
  term_ = Term{8};
  channel_->close();
  channel_.reset();
  await([&] { return hello_->session != first && !refusals_.empty(); }, "a refusal on the next connection");
  EXPECT_EQ(refusals_[0].code, "STALE_TERM");
  EXPECT_EQ(hello_->highest_term.count, 9u);
}

TEST_F(AgentTest, AnswersTypesAndFieldsItDoesNotUnderstand) {
  connect();
  channel_->send({platform::Frame::Kind::Message, R"({"v":[1,7],"type":"fly_to_the_moon","id":77})"});
  await([&] { return refusals_.size() == 1; }, "a refusal");
  EXPECT_EQ(refusals_[0].code, "UNKNOWN_TYPE");
  EXPECT_EQ(refusals_[0].re, 77u);
  channel_->send({platform::Frame::Kind::Message, R"({"v":[1,0],"type":"start_stage","id":78,"term":"x"})"});
  await([&] { return refusals_.size() == 2; }, "a refusal");
  EXPECT_EQ(refusals_[1].code, "MALFORMED");
  const auto first = hello_->session;
  channel_->send({platform::Frame::Kind::Message, R"({"v":[2,0],"type":"welcome","id":79})"});
  await([&] { return refusals_.size() == 3; }, "a refusal");
  EXPECT_EQ(refusals_[2].code, "VERSION_UNSUPPORTED");
  await([&] { return hello_->session != first; }, "another connection");
}

TEST_F(AgentTest, ProbesWithARealCompletion) {
  connect();
  start_and_await_ready();
  send(protocol::Probe{5, term_, "a", Epoch{7}, "Say something.", 8, 30000});
  await([&] { return probed_.has_value(); }, "the probe's end");
  EXPECT_TRUE(probed_->completed) << probed_->error;
  EXPECT_EQ(probed_->completion_tokens.count, 8u);
  EXPECT_EQ(probed_->counter_advance.count, 8u);
  EXPECT_EQ(probed_->text, "eight tokens");
  EXPECT_EQ(probed_->kv_capacity.count, 5000u);
  EXPECT_EQ(probed_->effective.model, "lab-model");
  EXPECT_EQ(probed_->effective.context_length.count, 4096u);
  EXPECT_EQ(probed_->effective.chunked_prefill.count, 512u);
  EXPECT_EQ(probed_->effective.max_running, 8u);
  send(protocol::Probe{6, term_, "a", Epoch{6}, "x", 8, 30000});
  await([&] { return !refusals_.empty(); }, "a refusal");
  EXPECT_EQ(refusals_[0].code, "STALE_EPOCH");
}

TEST_F(AgentTest, NamesEveryProblemOfItsConfiguration) {
  ASSERT_TRUE(platform::write_file_durably(folder_ / "bad.toml", "[node]\nname = 5\nunknown = 1\n").ok());
  platform::UniqueFd words{::open((folder_ / "words").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
  auto plan = platform::plan_of({AGENT_PROGRAM, "--config", folder_ / "bad.toml"});
  plan.error = words.get();
  const auto child = platform::spawn(plan);
  ASSERT_TRUE(child.ok());
  const int status = platform::wait_status(*child);
  EXPECT_EQ(WEXITSTATUS(status), 2);
  const std::string text = platform::content_of(folder_ / "words");
  EXPECT_NE(text.find("node.name"), std::string::npos) << text;
  EXPECT_NE(text.find("node.unknown"), std::string::npos) << text;
}

}  // namespace
}  // namespace troika::agent
