// Asking the leader, against one that is played on a Unix socket: what each way of failing means for the exit
// status.
#include "cli/client.hpp"

#include <gtest/gtest.h>

#include "platform/pki.hpp"
#include "protocol/codec.hpp"
#include "tests/unit/cli/played_leader.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::cli {
namespace {

protocol::StatusReply some_status() {
  protocol::StatusReply status;
  status.re = 1;
  status.cluster = "lab";
  status.version = "0.1.0";
  return status;
}

TEST(Client, AReplyIsRead) {
  const Leader leader(saying({protocol::encode(some_status(), 9)}));
  const auto answer = ask_status(leader.address(), kLimit);
  ASSERT_TRUE(answer.ok()) << answer.error.message();
  EXPECT_EQ(answer.reply->cluster, "lab");
}

TEST(Client, NobodyThereIsUnreachable) {
  const auto answer = ask_status({"/tmp/troika-no-such.sock", "", {}}, kLimit);
  EXPECT_EQ(answer.failure, kUnreachable);
  EXPECT_NE(answer.error.message().find("/tmp/troika-no-such.sock"), std::string::npos);
  EXPECT_NE(answer.remedy.find("is troikad running?"), std::string::npos);
  EXPECT_NE(answer.remedy.find("TROIKA_SOCKET"), std::string::npos);
}

TEST(Client, ARefusalIsTold) {
  const Leader leader(saying({protocol::encode(protocol::Refusal{1, "BUSY", "another command runs"}, 9)}));
  const auto answer = ask_status(leader.address(), kLimit);
  EXPECT_EQ(answer.failure, kWrong);
  EXPECT_NE(answer.error.message().find("another command runs (BUSY)"), std::string::npos);
}

TEST(Client, WithoutAReplyNothingCanBeTold) {
  for (const std::vector<std::string>& texts : {std::vector<std::string>{},
                                                {"nonsense"},
                                                {R"({"v":[2,0],"type":"status_reply","id":1})"},
                                                {R"({"v":[1,0],"type":"status_reply","id":1})"},
                                                {R"({"v":[1,0],"type":"something","id":1})"}}) {
    const Leader leader(saying(texts));
    const auto answer = ask_status(leader.address(), kLimit);
    EXPECT_FALSE(answer.ok());
    EXPECT_EQ(answer.failure, kCannotTell) << answer.error.message();
  }
}

TEST(Client, ASilentLeaderIsNotWaitedForForEver) {
  const Leader leader([](ChannelPtr channel) -> asio::awaitable<void> {
    (void)co_await channel->read(kLimit);
    (void)co_await channel->read(kLimit);
  });
  EXPECT_EQ(ask_status(leader.address(), std::chrono::milliseconds{200}).failure, kCannotTell);
}

TEST(Client, ACommandTellsItsProgressAndItsEnd) {
  const Leader leader(saying({protocol::encode(protocol::CommandProgress{1, "a: verifying"}, 2),
                              protocol::encode(protocol::CommandProgress{1, "a: loading"}, 3),
                              protocol::encode(protocol::CommandDone{1, Verdict::Ok, "a serves", {}}, 4)}));
  std::vector<std::string> told;
  const auto answer = give_command(
      leader.address(), {protocol::Verb::Start, "a", false},
      [&](std::string_view text) { told.emplace_back(text); }, kLimit);
  ASSERT_TRUE(answer.ok()) << answer.error.message();
  EXPECT_EQ(answer.reply->text, "a serves");
  EXPECT_EQ(told, (std::vector<std::string>{"a: verifying", "a: loading"}));
}

TEST(Client, AnAuditTellsHowFarItIsAndItsEnd) {
  protocol::AuditedNode node;
  node.node = "n1";
  const Leader leader(saying({protocol::encode(protocol::AuditStatus{1, {node}}, 2),
                              protocol::encode(protocol::AuditReply{1, "digest", {node}, {}}, 3)}));
  int told = 0;
  const auto answer =
      ask_audit(leader.address(), {false},
                [&](const protocol::AuditStatus& s) { told += s.nodes[0].node == "n1" ? 1 : 0; }, kLimit, {});
  ASSERT_TRUE(answer.ok()) << answer.error.message();
  EXPECT_EQ(answer.reply->manifest_digest, "digest");
  EXPECT_EQ(told, 1);
}

TEST(Client, WaitingForACommandCanBeGivenUp) {
  const Leader leader([](ChannelPtr channel) -> asio::awaitable<void> {
    (void)co_await channel->read(kLimit);
    (void)co_await channel->read(kLimit);
  });
  int asked = 0;
  const auto answer = give_command(
      leader.address(), {protocol::Verb::Stop, "", false}, [](std::string_view) {}, kLimit,
      [&] { return ++asked > 3; });
  EXPECT_EQ(answer.failure, kCannotTell);
  EXPECT_EQ(answer.error.reason, "interrupted");
}

TEST(Client, BadAddressesAndCertificatesAreUsageErrors) {
  EXPECT_EQ(ask_status({"", "nowhere", {}}, kLimit).failure, kUsage);
  EXPECT_EQ(ask_status({"", "host:99999", {}}, kLimit).failure, kUsage);
  EXPECT_EQ(
      ask_status({"", "127.0.0.1:1", {"/nonexistent/ca.crt", "/nonexistent/a.crt", "/nonexistent/a.key"}},
                 kLimit)
          .failure,
      kUsage);
}

// A leader would take it for an agent and answer about an agent's first message.
TEST(Client, OnlyAnOperatorsCertificateIsUsed) {
  const platform::Folder folder;
  constexpr Duration kValid = std::chrono::hours{1};
  ASSERT_TRUE(platform::make_authority(folder.path(), "lab", 2 * kValid).ok());
  const platform::Identity agent{"lab", platform::Role::Agent, "n1"};
  const auto files = platform::issue(folder.path(), agent, kValid);
  ASSERT_TRUE(files.ok()) << files.error().message();
  const auto answer =
      ask_status({"", "127.0.0.1:1", {folder / "ca.crt", files->certificate, files->key}}, kLimit);
  EXPECT_EQ(answer.failure, kUsage);
  EXPECT_EQ(answer.error.message(),
            "cannot use the certificate " + files->certificate +
                ": it is troika://lab/agent/n1, and an operator's certificate is needed");
  EXPECT_NE(answer.remedy.find("--role operator"), std::string::npos);
}

}  // namespace
}  // namespace troika::cli
