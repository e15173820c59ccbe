// The relay passes on what a gateway needs, as it comes, and nothing else.
#include "tests/unit/agent/rig.hpp"

namespace troika::agent {
namespace {

using platform::Frame;

class RelayTest : public AgentTest {
 public:
  struct Answer {
    std::optional<protocol::RelayHead> head;
    std::optional<protocol::RelayEnd> end;
    std::optional<protocol::Refusal> refusal;
    std::string body;
    std::size_t pieces = 0;
  };

  void SetUp() override {
    connect();
    start_and_await_ready();
  }
  asio::awaitable<platform::ChannelPtr> dial(std::shared_ptr<platform::TlsContext> tls) {
    auto channel =
        co_await platform::dial_tls("127.0.0.1", relay_, std::move(tls), platform::Role::Agent, node_, 30s);
    EXPECT_TRUE(channel.ok()) << channel.error().message();
    co_return *channel;
  }
  static void send_request(const platform::ChannelPtr& channel, const protocol::RelayRequest& request,
                           const std::string& body) {
    channel->send({Frame::Kind::Message, protocol::encode(request, 1)});
    for (std::size_t at = 0; at < body.size(); at += 60000)
      channel->send({Frame::Kind::Raw, body.substr(at, 60000)});
  }
  // Takes frames until the end, or until `enough` says so.
  asio::awaitable<Answer> take(platform::ChannelPtr channel, std::function<bool(const Answer&)> enough = {}) {
    Answer answer;
    while (!answer.end && !answer.refusal && !(enough && enough(answer))) {
      const auto frame = co_await channel->read(30s);
      if (!frame.ok()) break;
      if (frame->kind == Frame::Kind::Raw) {
        answer.body += frame->payload;
        ++answer.pieces;
        continue;
      }
      const auto envelope = protocol::parse_envelope(frame->payload);
      if (envelope->type == "relay_head") answer.head = *protocol::decode<protocol::RelayHead>(*envelope);
      if (envelope->type == "relay_end") answer.end = *protocol::decode<protocol::RelayEnd>(*envelope);
      if (envelope->type == "refusal") answer.refusal = *protocol::decode<protocol::Refusal>(*envelope);
    }
    co_return answer;
  }
  Answer ask(protocol::RelayRequest request, std::string body,
             std::shared_ptr<platform::TlsContext> tls = nullptr) {
    request.body_bytes = Bytes{body.size()};
    if (!tls) tls = leader_;
    return platform::run(io_,
                         [](RelayTest& self, protocol::RelayRequest r, std::string b,
                            std::shared_ptr<platform::TlsContext> t) -> asio::awaitable<Answer> {
                           const auto channel = co_await self.dial(t);
                           send_request(channel, r, b);
                           co_return co_await self.take(channel);
                         }(*this, std::move(request), std::move(body), std::move(tls)));
  }
  static protocol::RelayRequest post(const std::string& path, Epoch epoch = Epoch{7}) {
    return {"a", epoch, "POST", path, Bytes{}, "r1"};
  }
};

TEST_F(RelayTest, PassesOnAWholeAnswer) {
  const Answer answer = ask(post("/v1/completions"), "{\"prompt\":\"x\"}");
  ASSERT_TRUE(answer.head);
  EXPECT_EQ(answer.head->status, 200u);
  EXPECT_EQ(answer.head->content_type, "application/json");
  EXPECT_NE(answer.body.find("eight tokens"), std::string::npos);
  ASSERT_TRUE(answer.end);
  EXPECT_TRUE(answer.end->complete) << answer.end->error;
  const Answer models = ask({"a", Epoch{7}, "GET", "/v1/models", Bytes{}, ""}, "");
  ASSERT_TRUE(models.end);
  EXPECT_NE(models.body.find("lab-model"), std::string::npos);
}

TEST_F(RelayTest, TakesBodiesOfSeveralFrames) {
  const std::string body = "{\"prompt\":\"" + std::string(200'000, 'x') + "\"}";
  const Answer answer = ask(post("/v1/chat/completions"), body);
  ASSERT_TRUE(answer.end);
  EXPECT_NE(answer.body.find("\"echo_bytes\":" + std::to_string(body.size())), std::string::npos)
      << answer.body;
}

TEST_F(RelayTest, StreamsAsItComesAndCancelsWhenTheGatewayGoes) {
  platform::run(io_, [](RelayTest& self) -> asio::awaitable<void> {
    const auto channel = co_await self.dial(self.leader_);
    auto request = post("/v1/completions");
    const std::string body = "{\"stream\":true,\"prompt\":\"hold\"}";
    request.body_bytes = Bytes{body.size()};
    send_request(channel, request, body);
    // The stage holds its answer after the first event: it must be here all the same.
    const Answer answer = co_await self.take(channel, [](const Answer& a) { return a.body.size() >= 15; });
    EXPECT_EQ(answer.body, "data: {\"n\":1}\n\n");
    EXPECT_TRUE(answer.head);
    EXPECT_FALSE(answer.end);
    channel->close();
  }(*this));
  await(
      [&] {
        return platform::content_of(stage_directory() + "/log").find("the client is gone") !=
               std::string::npos;
      },
      "the stage sees that its client is gone");
}

TEST_F(RelayTest, TellsAWholeStreamFromACutOne) {
  const Answer whole = ask(post("/v1/completions"), "{\"stream\":true}");
  ASSERT_TRUE(whole.end);
  EXPECT_TRUE(whole.end->complete);
  EXPECT_NE(whole.body.find("data: [DONE]"), std::string::npos);
  const Answer cut = ask(post("/v1/completions"), "{\"stream\":true,\"prompt\":\"cut\"}");
  ASSERT_TRUE(cut.end);
  EXPECT_FALSE(cut.end->complete);
  EXPECT_FALSE(cut.end->error.empty());
  EXPECT_EQ(cut.body, "data: {\"n\":1}\n\n");
}

TEST_F(RelayTest, AStageThatDiesCutsItsStream) {
  platform::run(io_, [](RelayTest& self) -> asio::awaitable<void> {
    const auto channel = co_await self.dial(self.leader_);
    auto request = post("/v1/completions");
    const std::string body = "{\"stream\":true,\"prompt\":\"hold\"}";
    request.body_bytes = Bytes{body.size()};
    send_request(channel, request, body);
    (void)co_await self.take(channel, [](const Answer& a) { return !a.body.empty(); });
    for (const auto& one : self.marked())
      (void)platform::signal_process(one.id, SIGKILL);
    const Answer answer = co_await self.take(channel);
    EXPECT_TRUE(answer.end);
    EXPECT_FALSE(answer.end && answer.end->complete);
  }(*this));
}

TEST_F(RelayTest, RefusesWhatIsNotForIt) {
  const auto code = [&](protocol::RelayRequest request, std::shared_ptr<platform::TlsContext> tls = nullptr) {
    const Answer answer = ask(std::move(request), "", std::move(tls));
    return answer.refusal ? answer.refusal->code : "not refused";
  };
  EXPECT_EQ(code(post("/v1/completions", Epoch{6})), "STALE_EPOCH");
  EXPECT_EQ(code(post("/v1/completions", Epoch{8})), "STALE_EPOCH");
  auto other = post("/v1/completions");
  other.replica = "b";
  EXPECT_EQ(code(other), "STALE_EPOCH");
  EXPECT_EQ(code(post("/server_info")), "NOT_ALLOWED");
  EXPECT_EQ(code(post("/v1/completions?x=1")), "NOT_ALLOWED");
  EXPECT_EQ(code({"a", Epoch{7}, "GET", "/metrics", Bytes{}, ""}), "NOT_ALLOWED");
  EXPECT_EQ(code({"a", Epoch{7}, "DELETE", "/v1/models", Bytes{}, ""}), "NOT_ALLOWED");
  EXPECT_EQ(code(post("/v1/completions"), certificates_.context(platform::Role::Operator, "op")),
            "CERT_ROLE");
  EXPECT_EQ(code(post("/v1/completions"), certificates_.context(platform::Role::Agent, "n2")), "CERT_ROLE");
  const Answer large = platform::run(io_, [](RelayTest& self) -> asio::awaitable<Answer> {
    const auto channel = co_await self.dial(self.leader_);
    auto request = post("/v1/completions");
    request.body_bytes = Bytes{5u << 20};
    channel->send({Frame::Kind::Message, protocol::encode(request, 1)});
    co_return co_await self.take(channel);
  }(*this));
  ASSERT_TRUE(large.refusal);
  EXPECT_EQ(large.refusal->code, "MALFORMED");
}

}  // namespace
}  // namespace troika::agent
