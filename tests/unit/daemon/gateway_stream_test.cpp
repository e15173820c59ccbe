// Streams through the gateway: cases E01, E02, E04, E05, E14; modes 81, 82, 83, 54.
#include <gtest/gtest.h>

#include "tests/unit/daemon/gateway_rig.hpp"

namespace troika::daemon {
namespace {

using namespace std::chrono_literals;

const std::string kStream = "\"stream\":true";

TEST(GatewayStream, CompleteStreamPassesAsItIs) {  // E01
  GatewayRig rig;
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("Content-Type"), kStreamType);
  EXPECT_EQ(reply.body, chunk_event("Hello") + kFinishEvent + kDoneEvent);
  EXPECT_TRUE(reply.whole);
  ASSERT_EQ(rig.agent(0).arrivals().size(), 1u);
  const auto arrival = rig.agent(0).arrivals()[0];
  EXPECT_EQ(arrival.body, GatewayRig::body(kStream));
  EXPECT_EQ(arrival.request.path, "/v1/chat/completions");
  EXPECT_EQ(arrival.request.epoch, Epoch{7});
  EXPECT_TRUE(rig.soon([&] { return rig.door().in_flight() == 0; }));
  EXPECT_TRUE(rig.failures().empty());
}

TEST(GatewayStream, CutWithinAnEventEndsWithAnErrorEvent) {  // E02
  GatewayRig rig;
  rig.agent(0).script([](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello") + "data: {\"choices\":[{\"delta\":{\"conte");
    FakeAgent::end(c, false, "connection reset by peer");
    co_return;
  });
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.status, 200);
  const auto hello = chunk_event("Hello");
  ASSERT_EQ(reply.body.substr(0, hello.size()), hello);
  const auto rest = reply.body.substr(hello.size());
  EXPECT_EQ(rest.rfind("data: {\"error\":", 0), 0u) << rest;
  EXPECT_NE(rest.find("\"code\":\"upstream_truncated\""), std::string::npos);
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
  EXPECT_EQ(reply.body.find("conte"), reply.body.find("content"));  // the half event is not passed on
  ASSERT_TRUE(rig.soon([&] { return rig.failures().size() == 1; }));
  EXPECT_EQ(rig.failures()[0].finding.code, Code::TRUNCATED);
  EXPECT_EQ(rig.agent(1).arrivals().size(), 0u);  // never replayed after the first byte
}

TEST(GatewayStream, FinishWithoutDoneIsGood) {  // E04
  GatewayRig rig;
  rig.agent(0).script([](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello") + kFinishEvent);
    FakeAgent::end(c, true);
    co_return;
  });
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.body, chunk_event("Hello") + kFinishEvent);
  EXPECT_TRUE(reply.whole);
  ASSERT_TRUE(rig.soon([&] { return rig.failures().size() == 1; }));
  EXPECT_EQ(rig.failures()[0].finding.code, Code::COMPLETE_NO_DONE);
}

TEST(GatewayStream, EndWithoutFinishIsNeverGivenADone) {  // mode 81
  GatewayRig rig;
  rig.agent(0).script([](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello") + kDoneEvent);
    FakeAgent::end(c, true);
    co_return;
  });
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos) << reply.body;
  EXPECT_NE(reply.body.find("upstream_truncated"), std::string::npos);
}

TEST(GatewayStream, EngineErrorInTheStreamIsAFailureEvenWithDone) {
  GatewayRig rig;
  rig.agent(0).script([](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello") +
                           "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n" + kDoneEvent);
    FakeAgent::end(c, true);
    co_return;
  });
  const auto reply = rig.chat(kStream);
  EXPECT_NE(reply.body.find("out of memory"), std::string::npos);
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
  ASSERT_TRUE(rig.soon([&] { return rig.failures().size() == 1; }));
  EXPECT_EQ(rig.failures()[0].finding.code, Code::TRUNCATED_BY_ENGINE);
}

TEST(GatewayStream, SilenceIsStalledAndCancelsTheEngine) {  // E05
  RigOptions options;
  options.delivery.stall = 300ms;
  GatewayRig rig(options);
  rig.agent(0).script([&rig](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("one") + chunk_event("two"));
    co_await rig.agent(0).until_closed(c);
  });
  const auto reply = rig.chat(kStream);
  EXPECT_NE(reply.body.find("\"code\":\"upstream_stalled\""), std::string::npos) << reply.body;
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
  EXPECT_TRUE(rig.soon([&] { return rig.agent(0).cancelled() == 1 && rig.door().in_flight() == 0; }));
  ASSERT_TRUE(rig.soon([&] { return rig.failures().size() == 1; }));
  EXPECT_EQ(rig.failures()[0].finding.code, Code::STALLED);
}

// Says `first`, then only that it is there.
FakeAgent::Script frozen(std::string first) {
  return [first = std::move(first)](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, first);
    while (c->open()) {
      FakeAgent::data(c, ": ping\n\n");
      co_await FakeAgent::pause(20ms);
    }
  };
}

TEST(GatewayStream, EnginesCommentsAreNoProgress) {
  RigOptions options;
  options.agents = 1;
  options.delivery.stall = options.delivery.first_token = 300ms;
  GatewayRig rig(options);
  rig.agent(0).script(frozen(chunk_event("one")));
  const auto stalled = rig.chat(kStream);
  EXPECT_NE(stalled.body.find("\"code\":\"upstream_stalled\""), std::string::npos) << stalled.body;
  EXPECT_EQ(stalled.body.find("[DONE]"), std::string::npos);
  rig.agent(0).script(frozen(": hello\n\n"));
  const auto silent = rig.chat(kStream);
  EXPECT_EQ(silent.status, 504);
  EXPECT_EQ(GatewayRig::code(silent), "upstream_timeout");
  ASSERT_TRUE(rig.soon([&] { return rig.failures().size() == 2; }));
  for (const auto& failure : rig.failures())
    EXPECT_EQ(failure.finding.code, Code::STALLED);
  EXPECT_TRUE(rig.soon([&] { return rig.door().in_flight() == 0; }));
}

TEST(GatewayStream, NoFirstTokenBehindOurPingsEndsTheStream) {
  RigOptions options;
  options.agents = 1;
  options.delivery.first_token = 300ms;
  options.delivery.ping = 30ms;
  GatewayRig rig(options);
  rig.agent(0).script(frozen(": hello\n\n"));
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.status, 200);  // told with the first ping
  EXPECT_NE(reply.body.find("\"code\":\"upstream_timeout\""), std::string::npos) << reply.body;
}

TEST(GatewayStream, PingsFillSilenceBetweenEventsOnly) {  // mode 83
  const std::string ping = ": ping\n\n";
  Gate half, rest;
  RigOptions options;
  options.delivery.ping = 50ms;
  GatewayRig rig(options);
  rig.agent(0).script([&](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    co_await half.opened();
    const auto event = chunk_event("Hello");
    FakeAgent::data(c, event.substr(0, 20));  // half an event, then silence
    co_await rest.opened();
    FakeAgent::data(c, event.substr(20) + kFinishEvent + kDoneEvent);
    FakeAgent::end(c, true);
  });
  Connected client(rig.port());
  ASSERT_TRUE(client.send(post("/v1/chat/completions", GatewayRig::body(kStream))));
  std::string got;
  ASSERT_TRUE(client.read_until(got, ping, 3)) << got;
  half.open();
  ASSERT_TRUE(client.read_until(got, ping, 6)) << got;
  rest.open();
  auto reply = read_reply(client, got);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body.rfind(ping, 0), 0u) << reply.body;
  for (auto at = reply.body.find(ping); at != std::string::npos; at = reply.body.find(ping))
    reply.body.erase(at, ping.size());
  EXPECT_EQ(reply.body, chunk_event("Hello") + kFinishEvent + kDoneEvent);
}

// The native engine writes it with the head, before it reads the prompt.
TEST(GatewayStream, ARoleIsNoToken) {
  const std::string role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
  GatewayRig rig;
  rig.agent(0).script([&](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, role);
    FakeAgent::end(c, false, "reset");
    co_return;
  });
  rig.agent(1).script([&](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, role + chunk_event("Hello") + kFinishEvent + kDoneEvent);
    FakeAgent::end(c, true);
    co_return;
  });
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, role + chunk_event("Hello") + kFinishEvent + kDoneEvent);
}

TEST(GatewayStream, NoByteBeforeTheEnginesHead) {
  RigOptions options;
  options.delivery.ping = 50ms;
  GatewayRig rig(options);
  rig.agent(0).script([](platform::ChannelPtr c) -> asio::awaitable<void> {
    co_await FakeAgent::pause(300ms);
    FakeAgent::head(c, 429, "application/json");
    FakeAgent::data(c, "{\"error\":\"queue full\"}");
    FakeAgent::end(c, true);
  });
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.status, 429);  // the engine's own refusal could still be told
  EXPECT_EQ(reply.body, "{\"error\":\"queue full\"}");
  EXPECT_NE(reply.header("Retry-After"), "");
  EXPECT_EQ(rig.agent(1).arrivals().size(), 0u);  // no fault of the replica
  EXPECT_TRUE(rig.failures().empty());
}

TEST(GatewayStream, DeathBeforeTheFirstByteIsReplayedOnce) {  // E14 a
  GatewayRig rig;
  rig.agent(0).script(death());
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, chunk_event("Hello") + kFinishEvent + kDoneEvent);
  EXPECT_EQ(rig.agent(0).arrivals().size(), 1u);
  EXPECT_EQ(rig.agent(1).arrivals().size(), 1u);
  EXPECT_EQ(rig.agent(1).arrivals()[0].body, rig.agent(0).arrivals()[0].body);
  EXPECT_EQ(rig.stats().admitted, 1u);  // one admission
}

TEST(GatewayStream, DeathBetweenHeadAndFirstByteIsReplayedToo) {
  GatewayRig rig;
  rig.agent(0).script([](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::end(c, false, "the stage died");
    co_return;
  });
  EXPECT_EQ(rig.chat(kStream).body, chunk_event("Hello") + kFinishEvent + kDoneEvent);
}

TEST(GatewayStream, BothDeadIs502WithoutAThirdTry) {
  GatewayRig rig;
  rig.agent(0).script(death());
  rig.agent(1).script(death());
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.status, 502);
  EXPECT_EQ(GatewayRig::code(reply), "upstream_failed");
  EXPECT_EQ(rig.agent(0).arrivals().size() + rig.agent(1).arrivals().size(), 2u);
  EXPECT_EQ(rig.failures().size(), 2u);
}

TEST(GatewayStream, DeathAfterTheFirstByteIsNeverReplayed) {  // E14 b
  Gate seen;
  GatewayRig rig;
  rig.agent(0).script([&](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello"));
    co_await seen.opened();
    c->close();
  });
  Connected client(rig.port());
  ASSERT_TRUE(client.send(post("/v1/chat/completions", GatewayRig::body(kStream))));
  std::string got;
  ASSERT_TRUE(client.read_until(got, "Hello")) << got;
  seen.open();
  const auto reply = read_reply(client, got);
  EXPECT_NE(reply.body.find("upstream_truncated"), std::string::npos);
  EXPECT_EQ(rig.agent(1).arrivals().size(), 0u);
}

TEST(GatewayStream, NoAnswerInTimeIs504) {
  RigOptions options;
  options.agents = 1;
  options.delivery.first_token = 200ms;
  GatewayRig rig(options);
  rig.agent(0).script(
      [&rig](platform::ChannelPtr c) -> asio::awaitable<void> { co_await rig.agent(0).until_closed(c); });
  const auto reply = rig.chat(kStream);
  EXPECT_EQ(reply.status, 504);
  EXPECT_EQ(GatewayRig::code(reply), "upstream_timeout");
}

TEST(GatewayStream, ClientThatLeavesFreesTheSlotAndCancelsTheEngineOnce) {  // mode 54
  GatewayRig rig;
  rig.agent(0).script([&rig](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello"));
    co_await rig.agent(0).until_closed(c);
  });
  Connected client(rig.port());
  ASSERT_TRUE(client.send(post("/v1/chat/completions", GatewayRig::body(kStream))));
  std::string got;
  ASSERT_TRUE(client.read_until(got, "Hello")) << got;
  client.close();
  EXPECT_TRUE(rig.soon([&] { return rig.agent(0).cancelled() == 1 && rig.door().in_flight() == 0; }));
  EXPECT_TRUE(rig.failures().empty());
  EXPECT_EQ(rig.agent(1).arrivals().size(), 0u);
}

TEST(GatewayStream, ClientThatLeavesBeforeTheFirstByteIsNotReplayed) {
  GatewayRig rig;
  rig.agent(0).script(
      [&rig](platform::ChannelPtr c) -> asio::awaitable<void> { co_await rig.agent(0).until_closed(c); });
  {
    Connected client(rig.port());
    ASSERT_TRUE(client.send(post("/v1/chat/completions", GatewayRig::body(kStream))));
    ASSERT_TRUE(rig.soon([&] { return rig.agent(0).arrivals().size() == 1; }));
  }
  EXPECT_TRUE(rig.soon([&] { return rig.agent(0).cancelled() == 1 && rig.door().in_flight() == 0; }));
  EXPECT_EQ(rig.agent(1).arrivals().size(), 0u);
}

TEST(GatewayStream, EventBeyondAnyBoundIsCut) {
  RigOptions options;
  options.agents = 1;
  GatewayRig rig(options);
  rig.agent(0).script([](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello"));
    for (int i = 0; i < 40 && c->open(); ++i)
      FakeAgent::data(c, std::string(60000, 'x'));
    co_await FakeAgent::pause(100ms);
  });
  const auto reply = rig.chat(kStream);
  EXPECT_NE(reply.body.find("upstream_truncated"), std::string::npos);
  EXPECT_EQ(reply.body.find("xxxx"), std::string::npos);
}

}  // namespace
}  // namespace troika::daemon
