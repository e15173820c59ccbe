// The HTTP server's limits: nothing that a client sends or withholds crashes it, grows it or keeps others
// out.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "daemon/gateway/http_connection.hpp"
#include "tests/unit/daemon/gateway_rig.hpp"

namespace troika::daemon {
namespace {

using namespace std::chrono_literals;

const std::string kGetHealth = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

bool healthy(GatewayRig& rig) {
  return ask(rig.port(), kGetHealth).status == 200;
}

TEST(Http, ConnectionIsKeptForTheNextRequest) {
  GatewayRig rig;
  Connected client(rig.port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(kGetHealth));
    const auto reply = read_reply(client);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.header("Connection"), "keep-alive");
  }
}

TEST(Http, RequestsSentAheadAreAnsweredInOrder) {
  GatewayRig rig;
  Connected client(rig.port());
  ASSERT_TRUE(client.send(kGetHealth + "GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  const auto all = client.to_the_end();
  const auto first = all.find("HTTP/1.1 200");
  const auto second = all.find("HTTP/1.1 404");
  EXPECT_EQ(first, 0u);
  ASSERT_NE(second, std::string::npos);
  EXPECT_TRUE(client.closed());
}

TEST(Http, HeadHasNoBody) {
  GatewayRig rig;
  Connected client(rig.port());
  ASSERT_TRUE(client.send("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  const auto all = client.to_the_end();
  EXPECT_EQ(all.rfind("HTTP/1.1 200", 0), 0u);
  EXPECT_EQ(all.substr(all.size() - 4), "\r\n\r\n");
}

TEST(Http, OldClientsGetAStreamWithoutChunks) {
  GatewayRig rig;
  Connected client(rig.port());
  const auto body = GatewayRig::body("\"stream\":true");
  ASSERT_TRUE(client.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " +
                          std::to_string(body.size()) + "\r\n\r\n" + body));
  const auto all = client.to_the_end();
  EXPECT_EQ(all.find("Transfer-Encoding"), std::string::npos);
  EXPECT_EQ(all.substr(all.find("\r\n\r\n") + 4), chunk_event("Hello") + kFinishEvent + kDoneEvent);
}

TEST(Http, BodyInChunksAndExpect) {
  GatewayRig rig;
  Connected client(rig.port());
  ASSERT_TRUE(
      client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                  "Expect: 100-continue\r\n\r\n"));
  EXPECT_EQ(client.some().rfind("HTTP/1.1 100 ", 0), 0u);
  const auto body = GatewayRig::body("\"stream\":true");
  char size[16];
  std::snprintf(size, sizeof size, "%zx", body.size());
  ASSERT_TRUE(client.send(std::string(size) + "\r\n" + body + "\r\n0\r\n\r\n"));
  EXPECT_EQ(read_reply(client).status, 200);
}

TEST(Http, HeadersBeyondTheLimitAre431) {
  GatewayRig rig;
  const auto reply = ask(rig.port(), "GET /healthz HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n");
  EXPECT_EQ(reply.status, 431);
  EXPECT_EQ(reply.header("Connection"), "close");
}

TEST(Http, BodyBeyondTheLimitIs413WithoutBeingRead) {
  GatewayRig rig;
  EXPECT_EQ(
      ask(rig.port(), "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n{")
          .status,
      413);
  RigOptions options;
  options.http.body_bytes = 1000;
  GatewayRig small(options);
  Connected client(small.port());
  ASSERT_TRUE(client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" +
      std::string(2048, ' ') + "\r\n"));
  EXPECT_EQ(read_reply(client).status, 413);
}

TEST(Http, AllBodiesTogetherAreBounded) {
  RigOptions options;
  options.http.body_bytes = 1000;
  options.http.bodies_bytes = 1500;
  GatewayRig rig(options);
  Connected first(rig.port());
  ASSERT_TRUE(first.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{"));
  ASSERT_TRUE(rig.soon([&] { return rig.server().bodies_bytes() == 900; }));
  const auto reply =
      ask(rig.port(), "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{");
  EXPECT_EQ(reply.status, 503);
  first.close();
  ASSERT_TRUE(rig.soon([&] { return rig.server().bodies_bytes() == 0; }));
  EXPECT_EQ(rig.chat("\"stream\":true").status, 200);
}

TEST(Http, SilentConnectionsAreClosed) {
  RigOptions options;
  options.http.idle = 200ms;
  GatewayRig rig(options);
  Connected silent(rig.port());
  EXPECT_EQ(silent.to_the_end(), "");
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(rig.soon([&] { return rig.server().connections() == 0; }));
}

TEST(Http, SlowHeadersAndBodiesAreCutOff) {
  RigOptions options;
  options.http.header = 200ms;
  options.http.body = 200ms;
  GatewayRig rig(options);
  Connected head(rig.port());
  Connected body(rig.port());
  ASSERT_TRUE(head.send("GET /heal"));
  ASSERT_TRUE(body.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"));
  EXPECT_EQ(read_reply(head).status, 408);
  EXPECT_EQ(read_reply(body).status, 408);
  EXPECT_TRUE(rig.soon([&] { return rig.server().connections() == 0; }));
}

TEST(Http, SilentConnectionsDoNotKeepOthersOut) {
  RigOptions options;
  options.http.connections = 8;
  GatewayRig rig(options);
  std::vector<std::unique_ptr<Connected>> silent;
  for (int i = 0; i < 20; ++i)
    silent.push_back(std::make_unique<Connected>(rig.port()));
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(healthy(rig));
  rig.on_thread([&] { EXPECT_LE(rig.server().connections(), 8u); });
}

// Nothing in this test ends by itself: what makes room is the newcomer.
RigOptions patient(std::size_t connections) {
  RigOptions options;
  options.http.connections = connections;
  options.http.header = options.http.body = options.http.idle = 1h;
  return options;
}

TEST(Http, HalfOpenConnectionsDoNotKeepOthersOut) {
  Gate rest;
  GatewayRig rig(patient(8));
  rig.agent(0).script([&rest](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello"));
    co_await rest.opened();
    FakeAgent::data(c, kFinishEvent + kDoneEvent);
    FakeAgent::end(c, true);
  });
  Connected busy(rig.port());
  ASSERT_TRUE(busy.send(post("/v1/chat/completions", GatewayRig::body("\"stream\":true"))));
  std::string got;
  ASSERT_TRUE(busy.read_until(got, "Hello"));
  std::vector<std::unique_ptr<Connected>> half;
  for (int i = 0; i < 30; ++i) {
    half.push_back(std::make_unique<Connected>(rig.port()));
    ASSERT_TRUE(half.back()->send("GET /healthz HTTP/1.1\r\nHo"));
  }
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(healthy(rig));
  rig.on_thread([&] { EXPECT_LE(rig.server().connections(), 8u); });
  EXPECT_EQ(half.front()->to_the_end(), "");  // the longest one went
  EXPECT_TRUE(half.front()->closed());
  rest.open();  // a request in progress never does
  EXPECT_EQ(read_reply(busy, got).body, chunk_event("Hello") + kFinishEvent + kDoneEvent);
}

TEST(Http, AnAddressHasAShareOfTheConnections) {
  auto options = patient(100);
  options.http.loopback = 4;
  GatewayRig rig(options);
  // A body that is not whole is a request in progress.
  std::vector<std::unique_ptr<Connected>> busy;
  for (std::size_t i = 0; i < 3; ++i) {
    busy.push_back(std::make_unique<Connected>(rig.port()));
    ASSERT_TRUE(busy.back()->send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"));
    ASSERT_TRUE(rig.soon([&] { return rig.server().bodies_bytes() == 10 * (i + 1); }));
  }
  Connected idle(rig.port());
  ASSERT_TRUE(rig.soon([&] { return rig.server().connections() == 4; }));
  EXPECT_TRUE(healthy(rig));  // in place of the idle one
  EXPECT_EQ(idle.to_the_end(), "");
  EXPECT_TRUE(idle.closed());
  ASSERT_TRUE(rig.soon([&] { return rig.server().connections() == 3; }));
  busy.push_back(std::make_unique<Connected>(rig.port()));
  ASSERT_TRUE(busy.back()->send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"));
  ASSERT_TRUE(rig.soon([&] { return rig.server().bodies_bytes() == 40; }));
  Connected beyond(rig.port());
  const auto reply = read_reply(beyond);
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(GatewayRig::code(reply), "overloaded");
  EXPECT_EQ(reply.header("Retry-After"), "1");
  busy.clear();
  ASSERT_TRUE(rig.soon([&] { return rig.server().connections() == 0; }));
  EXPECT_TRUE(healthy(rig));
}

TEST(Http, WhoseShareAConnectionCountsFor) {
  const auto client = [](const char* text) {
    return gateway::client_of(asio::ip::make_address(text)).to_string();
  };
  EXPECT_EQ(client("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(client("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(client("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
  EXPECT_EQ(client("::1"), "::1");
}

// What is smuggled behind the head must never be answered as a request of its own.
TEST(Http, DoubtfulEndsOfRequestsAreRefusedAndTheConnectionClosed) {
  const std::string smuggled = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string length = "Content-Length: " + std::to_string(smuggled.size()) + "\r\n";
  struct Case {
    std::string fields;
    int status;
    std::string version = "1.1";
  };
  const std::vector<Case> cases{
      {"Host: x\r\nTransfer-Encoding: xchunked\r\n", 501},
      {"Host: x\r\nTransfer-Encoding: gzip, chunked\r\n", 501},
      {"Host: x\r\nTransfer-Encoding: chunked, identity\r\n", 400},
      {"Host: x\r\nTransfer-Encoding: identity\r\n", 400},
      {"Host: x\r\nTransfer-Encoding: chunked, chunked\r\n", 400},
      {"Host: x\r\nTransfer-Encoding: chunked;q=1\r\n", 400},
      {"Host: x\r\nTransfer-Encoding:\r\n", 400},
      {"Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Host: x\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Host: x\r\nTransfer-Encoding: chunked\r\n" + length, 400},
      {"Host: x\r\n" + length + "Transfer-Encoding: chunked\r\n", 400},
      {"Host: x\r\n" + length + "Transfer-Encoding: xchunked\r\n", 400},
      {"Transfer-Encoding: chunked\r\n", 400, "1.0"},
      {"Host: x\r\n" + length + length, 400},
      {"Host: x\r\nContent-Length: 5, 5\r\n", 400},
      {"Host: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n", 400},
      {"Host: x\r\nContent-Length: +5\r\n", 400},
      {length, 400},
      {"Host: x\r\nHost: y\r\n" + length, 400},
      {"Host: x\r\nContent-Encoding: gzip\r\n" + length, 415},
      {"Host: x\r\nExpect: 200-maybe\r\n" + length, 417},
  };
  GatewayRig rig;
  for (const auto& one : cases) {
    Connected client(rig.port());
    ASSERT_TRUE(
        client.send("POST /v1/completions HTTP/" + one.version + "\r\n" + one.fields + "\r\n" + smuggled));
    const auto all = client.to_the_end();
    EXPECT_TRUE(client.closed()) << one.fields;
    EXPECT_EQ(all.rfind("HTTP/1.1 " + std::to_string(one.status), 0), 0u) << one.fields << all;
    EXPECT_EQ(all.find("HTTP/1.1 ", 1), std::string::npos) << one.fields << all;
    EXPECT_NE(all.find("{\"error\":{\"code\":\"invalid_request\""), std::string::npos) << one.fields << all;
    EXPECT_NE(all.find("\r\nConnection: close\r\n"), std::string::npos) << one.fields;
  }
}

TEST(Http, UsualFormsOfTheSameFieldsAreTaken) {
  GatewayRig rig;
  const auto body = GatewayRig::body("\"stream\":true");
  for (const std::string fields : {"Content-Encoding: identity\r\n", "content-encoding: Identity\r\n"})
    EXPECT_EQ(ask(rig.port(), "POST /v1/chat/completions HTTP/1.1\r\nHost:\r\n" + fields +
                                  "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body)
                  .status,
              200);
  char size[16];
  std::snprintf(size, sizeof size, "%zx", body.size());
  EXPECT_EQ(ask(rig.port(),
                "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding:  Chunked \r\n\r\n" +
                    std::string(size) + "\r\n" + body + "\r\n0\r\n\r\n")
                .status,
            200);
}

TEST(Http, ClientThatReadsNothingIsCutOffAndTheEngineCancelled) {
  RigOptions options;
  options.http.write = 300ms;
  options.agents = 1;
  GatewayRig rig(options);
  rig.agent(0).script([](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    std::string events;
    for (int i = 0; i < 300; ++i)
      events += chunk_event(std::string(100, 'x'));
    while (c->open()) {
      const auto written = co_await c->write({platform::Frame::Kind::Raw, events}, std::chrono::seconds{10});
      if (!written.ok()) break;
    }
  });
  Connected client(rig.port());
  ASSERT_TRUE(client.send(post("/v1/chat/completions", GatewayRig::body("\"stream\":true"))));
  ASSERT_TRUE(rig.soon([&] { return rig.agent(0).arrivals().size() == 1; }));
  EXPECT_TRUE(rig.soon([&] { return rig.door().in_flight() == 0; }));
}

TEST(Http, GarbageIsAnsweredOrClosed) {
  GatewayRig rig;
  const std::vector<std::string> garbage{
      std::string("\0\0\0\0", 4),
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  // a TLS greeting
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
      "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
      "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
      "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
      "GET / HTTP/1.1\r\nA\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      std::string(100000, 'A'),
      std::string(100000, '\n'),
  };
  for (const auto& bytes : garbage) {
    Connected client(rig.port());
    (void)client.send(bytes);
    const auto answer = client.to_the_end(15s);
    EXPECT_TRUE(answer.empty() || answer.rfind("HTTP/1.1 4", 0) == 0) << answer.substr(0, 80);
    EXPECT_TRUE(client.closed());
  }
  EXPECT_TRUE(healthy(rig));
}

TEST(Http, SeededGarbageNeverHarms) {
  GatewayRig rig;
  std::mt19937 random(7);
  const auto valid = post("/v1/chat/completions", GatewayRig::body("\"stream\":true"));
  for (int round = 0; round < 150; ++round) {
    auto bytes = valid;
    const auto changes = 1 + random() % 8;
    for (unsigned i = 0; i < changes; ++i) {
      const auto at = random() % bytes.size();
      if (random() % 3 == 0)
        bytes.erase(at, 1 + random() % 9);
      else if (random() % 2 == 0)
        bytes[at] = static_cast<char>(random() % 256);
      else
        bytes.insert(at, 1 + random() % 9, static_cast<char>(random() % 256));
    }
    Connected client(rig.port());
    (void)client.send(bytes);
    (void)client.some(5ms);
  }
  EXPECT_TRUE(healthy(rig));
  EXPECT_TRUE(rig.soon([&] { return rig.door().in_flight() == 0; }));
}

}  // namespace
}  // namespace troika::daemon
