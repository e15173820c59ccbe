// Whole answers, refusals and paths of the gateway: cases E10, E11, E16; modes 55, 78, 79.
#include <gtest/gtest.h>

#include "tests/unit/daemon/gateway_rig.hpp"

namespace troika::daemon {
namespace {

using namespace std::chrono_literals;

const std::string kWhole = "{\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":3}}";

TEST(GatewayAnswer, WholeAnswerPassesAsItIs) {
  GatewayRig rig;
  rig.agent(0).script(whole_answer(200, kWhole));
  const auto reply = rig.chat();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kWhole);
  EXPECT_TRUE(rig.soon([&] { return rig.service().stats().completed == 1; }));
}

TEST(GatewayAnswer, WholeAnswerThatIsCutIsReplayedOr502) {
  GatewayRig rig;
  const auto cut = [](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, "application/json");
    FakeAgent::data(c, "{\"choices\":[");
    FakeAgent::end(c, false, "reset");
    co_return;
  };
  rig.agent(0).script(cut);
  rig.agent(1).script(whole_answer(200, kWhole));
  EXPECT_EQ(rig.chat().body, kWhole);
  rig.agent(1).script(cut);
  const auto reply = rig.chat();
  EXPECT_EQ(reply.status, 502);
  EXPECT_EQ(GatewayRig::code(reply), "upstream_failed");
}

TEST(GatewayAnswer, WholeAnswerHasTimeByWhatItMayWrite) {
  gateway::DeliveryLimits limits;
  EXPECT_EQ(limits.whole_answer(Tokens{64}), 8min + 64s);
  EXPECT_EQ(limits.whole_answer(Tokens{12288}), 60min);
  EXPECT_EQ(limits.whole_answer(Tokens{1u << 30}), 60min);
  RigOptions options;
  options.agents = 1;
  options.delivery.first_token = 100ms;
  options.delivery.each_token = 10ms;
  GatewayRig rig(options);
  rig.agent(0).script(
      [&rig](platform::ChannelPtr c) -> asio::awaitable<void> { co_await rig.agent(0).until_closed(c); });
  const auto reply = rig.chat("\"max_tokens\":5");
  EXPECT_EQ(reply.status, 504);
  EXPECT_EQ(GatewayRig::code(reply), "upstream_timeout");
  // Whatever it trickles, the limit is for the whole.
  rig.agent(0).script([](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, "application/json");
    while (c->open()) {
      FakeAgent::data(c, " ");
      co_await FakeAgent::pause(10ms);
    }
  });
  EXPECT_EQ(rig.chat("\"max_tokens\":5").status, 504);
  ASSERT_TRUE(rig.soon([&] { return rig.failures().size() == 2; }));
  for (const auto& failure : rig.failures())
    EXPECT_EQ(failure.finding.code, Code::STALLED);
}

TEST(GatewayAnswer, EnginesRefusalsPassAndAreNoFault) {  // mode 79
  GatewayRig rig;
  for (const unsigned status : {400u, 429u, 503u}) {
    rig.agent(0).script(whole_answer(status, "{\"object\":\"error\"}"));
    const auto reply = rig.chat();
    EXPECT_EQ(reply.status, static_cast<int>(status));
    EXPECT_EQ(reply.body, "{\"object\":\"error\"}");
  }
  EXPECT_TRUE(rig.failures().empty());
  EXPECT_EQ(rig.agent(1).arrivals().size(), 0u);
}

TEST(GatewayAnswer, EnginesFailureIsReplayed) {
  GatewayRig rig;
  rig.agent(0).script(whole_answer(500, "{\"object\":\"error\"}"));
  rig.agent(1).script(whole_answer(200, kWhole));
  EXPECT_EQ(rig.chat().body, kWhole);
  EXPECT_EQ(rig.failures().size(), 1u);
}

TEST(GatewayAnswer, OtherTargetIsUsedWhereTheFirstCannotBeReached) {
  GatewayRig rig;
  rig.agent(1).script(whole_answer(200, kWhole));
  rig.stop_agent(0);
  EXPECT_EQ(rig.chat().body, kWhole);
  EXPECT_EQ(rig.stats().admitted, 1u);
}

TEST(GatewayAnswer, ReplicasShareTheRequestsWhereBothAreActive) {
  GatewayRig rig;
  for (std::size_t i = 0; i < 2; ++i)
    rig.agent(i).script(whole_answer(200, kWhole));
  rig.on_thread([&] { rig.route_all(true); });
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(rig.chat().status, 200);
    EXPECT_TRUE(rig.soon([&] { return rig.door().loads().empty(); }));
  }
  EXPECT_EQ(rig.agent(0).arrivals().size(), 3u);
  EXPECT_EQ(rig.agent(1).arrivals().size(), 3u);
  rig.stop_agent(0);  // the other one takes all
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(rig.chat().status, 200);
  EXPECT_EQ(rig.agent(1).arrivals().size(), 5u);
}

TEST(GatewayAnswer, OverThePromptCapNeverReachesAnEngine) {  // E10
  GatewayRig rig;
  const auto reply = rig.chat("\"test_tokens\":8193,\"max_tokens\":1");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(GatewayRig::code(reply), "context_length_exceeded");
  EXPECT_NE(reply.body.find("8193"), std::string::npos);
  EXPECT_NE(reply.body.find("8192"), std::string::npos);
  EXPECT_EQ(reply.header("Retry-After"), "");
  EXPECT_EQ(rig.agent(0).arrivals().size(), 0u);
}

TEST(GatewayAnswer, WindowIsExact) {  // E11
  GatewayRig rig;
  rig.agent(0).script(whole_answer(200, kWhole));
  const auto over = rig.chat("\"test_tokens\":8000,\"max_tokens\":4289");
  EXPECT_EQ(over.status, 400);
  EXPECT_EQ(GatewayRig::code(over), "context_length_exceeded");
  EXPECT_NE(over.body.find("12288"), std::string::npos);
  EXPECT_EQ(rig.agent(0).arrivals().size(), 0u);
  EXPECT_EQ(rig.chat("\"test_tokens\":8000,\"max_tokens\":4288").status, 200);
}

TEST(GatewayAnswer, RateIsRefusedWithTheSecondsUntilTheNextPlace) {
  RigOptions options;
  options.rule.rate = 0.01;
  options.rule.burst = 1;
  GatewayRig rig(options);
  rig.agent(0).script(whole_answer(200, kWhole));
  const Instant begin = platform::now();
  EXPECT_EQ(rig.chat().status, 200);
  const auto reply = rig.chat();
  const double passed_s = platform::seconds_since(begin);
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(GatewayRig::code(reply), "rate_limit_exceeded");
  // 100 s after the first one was passed on, rounded up.
  EXPECT_LE(std::atoi(reply.header("Retry-After").c_str()), 100);
  EXPECT_GE(std::atoi(reply.header("Retry-After").c_str()), 100 - passed_s);
  EXPECT_EQ(rig.agent(0).arrivals().size(), 1u);
}

TEST(GatewayAnswer, NinthInFlightIsRefused) {  // E16
  RigOptions options;
  options.rule.rate = 0.1;
  options.rule.burst = 100;
  options.rule.in_flight = 8;
  GatewayRig rig(options);
  rig.agent(0).script(
      [&rig](platform::ChannelPtr c) -> asio::awaitable<void> { co_await rig.agent(0).until_closed(c); });
  std::vector<std::unique_ptr<Connected>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<Connected>(rig.port()));
    ASSERT_TRUE(clients.back()->send(post("/v1/chat/completions", GatewayRig::body("\"max_tokens\":5"))));
  }
  ASSERT_TRUE(rig.soon([&] { return rig.agent(0).arrivals().size() == 8; }));
  const auto reply = rig.chat("\"max_tokens\":5");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(GatewayRig::code(reply), "in_flight_limit");
  EXPECT_GE(std::atoi(reply.header("Retry-After").c_str()), 10);
  EXPECT_EQ(rig.agent(0).arrivals().size(), 8u);
  clients.clear();
  EXPECT_TRUE(rig.soon([&] { return rig.door().in_flight() == 0; }));
}

// More requests at once than ways are opened at a time, all of which the rate allows: each of them passes.
TEST(GatewayAnswer, ManyAtOnceAreAllPassedOn) {
  constexpr std::size_t kMany = 3 * gateway::DoorLimits{}.opening;
  RigOptions options;
  options.rule = RigOptions::generous();
  options.rule.in_flight = kMany;
  GatewayRig rig(options);
  const auto held = rig.hold_agents();
  std::vector<std::unique_ptr<Connected>> clients;
  for (std::size_t i = 0; i < kMany; ++i) {
    clients.push_back(std::make_unique<Connected>(rig.port()));
    ASSERT_TRUE(clients.back()->send(post("/v1/chat/completions", GatewayRig::body("\"max_tokens\":5"))));
  }
  ASSERT_TRUE(rig.soon([&] { return rig.door().opening() == kMany; }));
  held->set_value();
  for (const auto& client : clients)
    EXPECT_EQ(read_reply(*client).status, 200);
}

TEST(GatewayAnswer, QueuedRequestWaitsForItsPlace) {
  RigOptions options;
  options.rule.rate = 5;
  options.rule.burst = 1;
  options.rule.queue = 1;
  options.rule.queue_wait = 20s;
  GatewayRig rig(options);
  rig.agent(0).script(whole_answer(200, kWhole));
  const Instant begin = platform::now();
  EXPECT_EQ(rig.chat().status, 200);
  EXPECT_EQ(rig.chat().status, 200);
  const auto arrivals = rig.agent(0).arrivals();
  ASSERT_EQ(arrivals.size(), 2u);
  // Not from the first arrival: the agent may have noted it late.
  EXPECT_GE(arrivals[1].at - begin, 200ms);
}

TEST(GatewayAnswer, AFullQueueRefuses) {
  RigOptions options;
  options.rule.rate = 0.01;  // nobody's turn comes in this test
  options.rule.burst = 1;
  options.rule.queue = 1;
  options.rule.queue_wait = 1000s;
  GatewayRig rig(options);
  rig.agent(0).script(whole_answer(200, kWhole));
  EXPECT_EQ(rig.chat().status, 200);
  Connected waiting(rig.port());
  ASSERT_TRUE(waiting.send(post("/v1/chat/completions", GatewayRig::body({}))));
  ASSERT_TRUE(rig.soon([&] { return rig.door().waiting() == 1; }));
  const auto full = rig.chat();
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(GatewayRig::code(full), "rate_limit_exceeded");
  rig.on_thread([&] { EXPECT_EQ(rig.door().waiting(), 1u); });
  EXPECT_EQ(rig.agent(0).arrivals().size(), 1u);
}

TEST(GatewayAnswer, QueuedClientThatLeavesGivesItsPlaceBack) {
  Gate end;
  RigOptions options;
  options.rule.in_flight = 1;
  options.rule.queue = 1;
  options.rule.queue_wait = 60s;
  GatewayRig rig(options);
  rig.agent(0).script([&end](platform::ChannelPtr c) -> asio::awaitable<void> {
    co_await end.opened();
    FakeAgent::head(c, 200, "application/json");
    FakeAgent::data(c, kWhole);
    FakeAgent::end(c, true);
  });
  const auto request = post("/v1/chat/completions", GatewayRig::body({}));
  Connected served(rig.port());
  ASSERT_TRUE(served.send(request));
  ASSERT_TRUE(rig.soon([&] { return rig.agent(0).arrivals().size() == 1; }));
  {
    Connected leaves(rig.port());
    ASSERT_TRUE(leaves.send(request));
    ASSERT_TRUE(rig.soon([&] { return rig.door().waiting() == 1; }));
  }
  ASSERT_TRUE(rig.soon([&] { return rig.door().waiting() == 0; }));
  Connected next(rig.port());
  ASSERT_TRUE(next.send(request));
  EXPECT_TRUE(rig.soon([&] { return rig.door().waiting() == 1; })) << "the place was not free";
  end.open();
  EXPECT_EQ(read_reply(served).status, 200);
  EXPECT_EQ(read_reply(next).status, 200);
  EXPECT_EQ(rig.agent(0).arrivals().size(), 2u);
}

TEST(GatewayAnswer, WhatNoEngineShouldSee) {
  GatewayRig rig;
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", "invalid_request"},
      {"not json", "invalid_request"},
      {"[]", "invalid_request"},
      {"{}", "invalid_request"},
      {"{\"messages\":[]}", "invalid_request"},
      {"{\"messages\":\"hi\"}", "invalid_request"},
      {GatewayRig::body("\"stream\":1"), "invalid_request"},
      {GatewayRig::body("\"max_tokens\":0"), "invalid_request"},
      {GatewayRig::body("\"max_tokens\":-3"), "invalid_request"},
      {GatewayRig::body("\"max_tokens\":1.5"), "invalid_request"},
      {GatewayRig::body("\"max_tokens\":18446744073709551615"), "invalid_request"},
      {GatewayRig::body("\"model\":7"), "invalid_request"},
      {GatewayRig::body("\"test_bad\":1"), "invalid_request"},
      {std::string(200, '[') + std::string(200, ']'), "invalid_request"},
      {GatewayRig::body("\"max_tokens\":5") + '\0', "invalid_request"},
      {GatewayRig::body("\"response_format\":{\"type\":\"json_object\"}"), "unsupported_by_profile"},
      {GatewayRig::body("\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{}}"),
       "unsupported_by_profile"},
      {GatewayRig::body("\"guided_json\":{}"), "unsupported_by_profile"},
      {GatewayRig::body("\"guided_choice\":[\"a\"]"), "unsupported_by_profile"},
      {GatewayRig::body("\"regex\":\"a+\""), "unsupported_by_profile"},
      {GatewayRig::body("\"ebnf\":\"x\""), "unsupported_by_profile"},
      {GatewayRig::body("\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"strict\":true}}]"),
       "unsupported_by_profile"},
      {GatewayRig::body("\"tool_choice\":\"required\""), "unsupported_by_profile"},
      {GatewayRig::body("\"n\":2"), "unsupported_by_profile"},
  };
  for (const auto& [body, code] : bad) {
    const auto reply = ask(rig.port(), post("/v1/chat/completions", body));
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_EQ(GatewayRig::code(reply), code) << body;
    const auto json = nlohmann::json::parse(reply.body);
    for (const auto* field : {"message", "type", "param", "code"})
      EXPECT_TRUE(json["error"].contains(field));
  }
  EXPECT_EQ(rig.agent(0).arrivals().size(), 0u);
}

TEST(GatewayAnswer, UnknownAndHarmlessFieldsPassThrough) {
  GatewayRig rig;
  rig.agent(0).script(whole_answer(200, kWhole));
  const std::string fields =
      "\"temperature\":0.3,\"brand_new\":{\"x\":[1]},\"response_format\":{\"type\":\"text\"},\"guided_json\":"
      "null,"
      "\"n\":1,\"tool_choice\":\"auto\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
      "\"strict\":false}}]";
  EXPECT_EQ(rig.chat(fields).status, 200);
  ASSERT_EQ(rig.agent(0).arrivals().size(), 1u);
  EXPECT_EQ(rig.agent(0).arrivals()[0].body, GatewayRig::body(fields));
}

TEST(GatewayAnswer, WithoutARouteItSaysSo) {
  GatewayRig rig;
  protocol::Route route;
  route.reason = "a is loading";
  rig.give(route);
  auto reply = rig.chat();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(GatewayRig::code(reply), "no_replica");
  EXPECT_NE(reply.header("Retry-After"), "");
  EXPECT_NE(reply.body.find("a is loading"), std::string::npos);
  route.draining = true;
  rig.give(route);
  reply = rig.chat();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(GatewayRig::code(reply), "draining");
  EXPECT_NE(reply.header("Retry-After"), "");
}

TEST(GatewayAnswer, DrainLeavesRequestsInFlightAlone) {
  Gate drained;
  GatewayRig rig;
  rig.agent(0).script([&drained](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello"));
    co_await drained.opened();
    FakeAgent::data(c, kFinishEvent + kDoneEvent);
    FakeAgent::end(c, true);
  });
  Connected client(rig.port());
  ASSERT_TRUE(client.send(post("/v1/chat/completions", GatewayRig::body("\"stream\":true"))));
  ASSERT_TRUE(rig.soon([&] { return rig.agent(0).arrivals().size() == 1; }));
  protocol::Route drain;
  drain.draining = true;
  rig.give(drain);
  std::vector<protocol::TargetLoad> loads;
  rig.on_thread([&] { loads = rig.service().stats().loads; });
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].replica, "a");
  drained.open();
  EXPECT_EQ(read_reply(client).body, chunk_event("Hello") + kFinishEvent + kDoneEvent);
  EXPECT_TRUE(rig.soon([&] { return rig.service().stats().loads.empty(); }));
}

TEST(GatewayAnswer, OtherPaths) {
  GatewayRig rig;
  const auto get = [&](const std::string& path) {
    return ask(rig.port(), "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  };
  EXPECT_EQ(get("/v1/models").status, 200);
  EXPECT_NE(get("/v1/models").body.find("\"id\":\"m\""), std::string::npos);
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/healthz?x=1").status, 200);
  EXPECT_EQ(get("/").status, 404);
  EXPECT_EQ(get("/flush_cache").status, 404);
  EXPECT_EQ(get("/v1/chat/completions").status, 405);
  EXPECT_EQ(ask(rig.port(), post("/v1/completions", "{\"prompt\":\"x\",\"stream\":true}")).status, 200);
  EXPECT_EQ(rig.agent(0).arrivals().back().request.path, "/v1/completions");
  rig.give({});
  EXPECT_EQ(get("/healthz").status, 503);
}

TEST(GatewayAnswer, EveryAdmissionIsInTheLedgerWithItsEnd) {
  GatewayRig rig;
  rig.agent(0).script(whole_answer(200, kWhole));
  EXPECT_EQ(rig.chat("\"max_tokens\":9").status, 200);
  EXPECT_TRUE(rig.soon([&] { return rig.door().in_flight() == 0; }));
  auto database = platform::Database::open(rig.ledger_path(), platform::Database::Mode::ReadOnly);
  ASSERT_TRUE(database.ok());
  auto query = database->prepare(
      "SELECT replica, epoch, prompt_tokens, max_tokens, outcome, completion_tokens FROM requests");
  ASSERT_TRUE(query.ok());
  auto row = query->step();
  ASSERT_TRUE(row.ok() && *row);
  EXPECT_EQ(query->text(0), "a");
  EXPECT_EQ(query->integer(1), 7);
  EXPECT_EQ(query->integer(2), 10);
  EXPECT_EQ(query->integer(3), 9);
  EXPECT_EQ(query->text(4), "complete");
  EXPECT_EQ(query->integer(5), 3);
}

// Admissions fail as on a full disk, until the trigger is dropped.
constexpr std::string_view kFullDisk =
    "CREATE TRIGGER full BEFORE INSERT ON requests BEGIN SELECT raise(ABORT, 'database or disk is full'); "
    "END";

TEST(GatewayAnswer, WhatCannotBeWrittenIsNotPassedOn) {
  GatewayRig rig;
  auto database = platform::Database::open(rig.ledger_path(), platform::Database::Mode::ReadWrite);
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE(database->execute(kFullDisk).ok());
  const auto reply = rig.chat();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(GatewayRig::code(reply), "ledger_unavailable");
  EXPECT_NE(reply.header("Retry-After"), "");
  EXPECT_EQ(rig.agent(0).arrivals().size(), 0u);
  rig.on_thread([&] { EXPECT_EQ(rig.door().in_flight(), 0u); });
  ASSERT_TRUE(database->execute("DROP TRIGGER full").ok());
  EXPECT_EQ(rig.chat("\"stream\":true").status, 200);
}

TEST(GatewayAnswer, HealthTellsThatTheLedgerCannotBeWrittenAndRecoversByItself) {
  GatewayRig rig;
  const auto health = [&] { return ask(rig.port(), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); };
  EXPECT_EQ(health().status, 200);
  auto database = platform::Database::open(rig.ledger_path(), platform::Database::Mode::ReadWrite);
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE(database->execute(kFullDisk).ok());
  EXPECT_EQ(rig.chat().status, 503);
  const auto sick = health();
  EXPECT_EQ(sick.status, 503);
  EXPECT_NE(sick.body.find("\"status\":\"ledger_unavailable\""), std::string::npos) << sick.body;
  EXPECT_NE(sick.body.find("disk is full"), std::string::npos) << sick.body;
  ASSERT_TRUE(database->execute("DROP TRIGGER full").ok());
  bool well = false;  // without a request in between
  for (int i = 0; i < 200 && !well; ++i) {
    std::this_thread::sleep_for(50ms);
    well = health().status == 200;
  }
  EXPECT_TRUE(well);
}

TEST(GatewayAnswer, OutputThatNobodyBoundsIsWhatFits) {
  GatewayRig rig;
  for (std::size_t i = 0; i < 2; ++i)
    rig.agent(i).script(whole_answer(200, kWhole));
  protocol::Route route;
  rig.on_thread([&] { route = rig.route(); });
  route.targets[0].kv_capacity = Tokens{6000};
  route.targets[1].kv_capacity = Tokens{5000};
  rig.give(route);
  EXPECT_EQ(rig.chat("\"test_tokens\":4000").status, 200);
  EXPECT_TRUE(rig.soon([&] { return rig.door().in_flight() == 0; }));
  const auto over = rig.chat("\"test_tokens\":4000,\"max_tokens\":2001");
  EXPECT_EQ(over.status, 400);  // asked for, it is refused
  EXPECT_EQ(GatewayRig::code(over), "context_length_exceeded");
  EXPECT_EQ(rig.chat("\"test_tokens\":6000").status, 400);  // the prompt alone is too long
  auto database = platform::Database::open(rig.ledger_path(), platform::Database::Mode::ReadOnly);
  ASSERT_TRUE(database.ok());
  auto query = database->prepare("SELECT max_tokens FROM requests");
  ASSERT_TRUE(query.ok());
  auto row = query->step();
  ASSERT_TRUE(row.ok() && *row);
  EXPECT_EQ(query->integer(0), 1000);  // on either replica
}

TEST(GatewayAnswer, OnlyTheServedModelIsAnswered) {
  GatewayRig rig;
  rig.agent(0).script(whole_answer(200, kWhole));
  const auto get = [&](const std::string& path) {
    return ask(rig.port(), "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  };
  EXPECT_EQ(rig.chat("\"model\":\"m\"").status, 200);
  EXPECT_EQ(rig.chat("\"model\":null").status, 200);
  EXPECT_EQ(rig.chat().status, 200);
  for (const auto& reply :
       {rig.chat("\"model\":\"gpt-4\""), rig.chat("\"model\":\"\""), get("/v1/models/gpt-4")}) {
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(GatewayRig::code(reply), "model_not_found");
    EXPECT_NE(reply.body.find("\"type\":\"invalid_request_error\""), std::string::npos);
    EXPECT_NE(reply.body.find("\\\"m\\\""), std::string::npos) << reply.body;  // the served one is named
  }
  EXPECT_EQ(rig.agent(0).arrivals().size(), 3u);
  for (const std::string path : {"/v1/models/m", "/v1/models/%6d"}) {
    const auto object = nlohmann::json::parse(get(path).body, nullptr, false);
    EXPECT_EQ(object.value("id", ""), "m") << path;
    EXPECT_EQ(object.value("object", ""), "model") << path;
  }
}

}  // namespace
}  // namespace troika::daemon
