// Asking the leader, against one that is played on a Unix socket: what each way of failing means for the exit
// status.
#include "cli/client.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <thread>

#include "platform/channel.hpp"
#include "platform/files.hpp"
#include "protocol/codec.hpp"

namespace troika::cli {
namespace {

namespace asio = boost::asio;
using platform::ChannelPtr;
using platform::Frame;

constexpr Duration kLimit = std::chrono::seconds{20};

// Plays `act` for each connection, on a thread of its own.
class Leader {
 public:
  using Act = std::function<asio::awaitable<void>(ChannelPtr)>;
  explicit Leader(Act act) {
    TROIKA_INVARIANT(platform::make_directories(folder_, 0700).ok());
    auto listening = platform::listen_unix(io_.get_executor(), path_, std::move(act));
    TROIKA_INVARIANT(listening.ok());
    listener_ = *std::move(listening);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Leader() {
    io_.stop();
    thread_.join();
    listener_.reset();
    EXPECT_TRUE(platform::remove_tree(folder_).ok());  // with the lock beside the socket
  }
  Global address() const { return {path_, "", {}}; }

 private:
  std::string folder_ = "/tmp/troika-client-" + platform::random_hex(6);
  std::string path_ = folder_ + "/control.sock";
  asio::io_context io_{1};
  std::unique_ptr<platform::Listener> listener_;
  std::thread thread_;
};

Frame message(std::string text) {
  Frame frame;
  frame.payload = std::move(text);
  return frame;
}

// Reads the request, then says these one after the other and closes.
Leader::Act saying(std::vector<std::string> texts) {
  return [texts = std::move(texts)](ChannelPtr channel) -> asio::awaitable<void> {
    (void)co_await channel->read(kLimit);
    for (const std::string& text : texts)
      channel->send(message(text));
    co_await channel->flush_and_close(kLimit);
  };
}

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

}  // namespace
}  // namespace troika::cli
