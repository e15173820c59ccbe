// The leader's doors over real sockets: who is let in, what operators and the gateway are told.
#include <gtest/gtest.h>

#include "daemon/control/doors.hpp"
#include "tests/unit/daemon/leader_rig.hpp"
#include "tests/unit/platform/net.hpp"

namespace troika::daemon {
namespace {

using platform::Role;
using platform::run;
using platform::until;
using namespace std::chrono_literals;
namespace asio = boost::asio;

class ControlTest : public testing::Test {
 public:                                   // coroutines of the tests reach in
  static constexpr Duration kLimit = 20s;  // only a broken product reaches it

  ControlTest()
      : certificates_("lab"),
        failures_(rig_.incidents()),
        seat_(rig_.leader(), failures_),
        operators_(rig_.leader(), seat_, rig_.incidents()),
        doors_(rig_.leader(), seat_, operators_) {
    auto remote = platform::listen_tls(
        io_.get_executor(), "127.0.0.1", 0, certificates_.context(Role::Leader, "leader"),
        [this](platform::ChannelPtr c) { return counted(doors_.serve_remote(std::move(c))); });
    EXPECT_TRUE(remote.ok());
    remote_ = std::move(remote).value();
    auto local = platform::listen_unix(
        io_.get_executor(), folder_ / "c.sock",
        [this](platform::ChannelPtr c) { return counted(doors_.serve_local(std::move(c))); });
    EXPECT_TRUE(local.ok());
    local_ = std::move(local).value();
  }
  ~ControlTest() override {
    remote_.reset();
    local_.reset();
    EXPECT_TRUE(run(io_, until([this] { return serving_ == 0; })));  // they use what goes now
  }

  asio::awaitable<void> counted(asio::awaitable<void> serving) {
    ++serving_;
    co_await std::move(serving);
    --serving_;
  }
  asio::awaitable<platform::ChannelPtr> dial(Role role, std::string name) {
    auto context = certificates_.context(role, name);
    auto channel =
        co_await platform::dial_tls("127.0.0.1", remote_->port(), context, Role::Leader, "leader", kLimit);
    EXPECT_TRUE(channel.ok());
    co_return *channel;
  }
  asio::awaitable<platform::ChannelPtr> dial_local() {
    auto channel = co_await platform::dial_unix(folder_ / "c.sock", kLimit);
    EXPECT_TRUE(channel.ok());
    co_return *channel;
  }
  template <class T>
  static void send(const platform::ChannelPtr& channel, const T& message, std::uint64_t id = 1) {
    channel->send({platform::Frame::Kind::Message, protocol::encode(message, id)});
  }
  static asio::awaitable<protocol::Envelope> next(platform::ChannelPtr channel) {
    auto frame = co_await channel->read(kLimit);
    if (!frame.ok()) {
      protocol::Envelope closed;
      closed.type = "closed";
      co_return closed;
    }
    auto envelope = protocol::parse_envelope(frame->payload);
    EXPECT_TRUE(envelope.ok());
    co_return std::move(envelope).value();
  }
  template <class T>
  static asio::awaitable<T> expect(platform::ChannelPtr channel) {
    auto envelope = co_await next(channel);
    EXPECT_EQ(envelope.type, T::kType);
    auto message = protocol::decode<T>(envelope);
    EXPECT_TRUE(message.ok());
    co_return message.ok() ? *message : T{};
  }
  protocol::Hello hello(const std::string& node) {
    protocol::Hello h;
    h.cluster = "lab";
    h.node = node;
    h.relay_address = "x:1";
    h.link_address = "x:2";
    return h;
  }

  LeaderRig rig_;
  platform::Folder folder_;
  platform::Certificates certificates_;
  asio::io_context io_{1};
  RequestFailures failures_;
  GatewaySeat seat_;
  Operators operators_;
  Doors doors_;
  std::unique_ptr<platform::Listener> remote_;
  std::unique_ptr<platform::Listener> local_;
  int serving_ = 0;
};

TEST_F(ControlTest, AgentIsWelcomedAndHeartbeatsAreAnswered) {
  run(io_, [](ControlTest* t) -> asio::awaitable<void> {
    auto channel = co_await t->dial(Role::Agent, "n1");
    send(channel, t->hello("n1"));
    const auto welcome = co_await expect<protocol::Welcome>(channel);
    EXPECT_EQ(welcome.term, Term{1});
    send(channel, protocol::Heartbeat{}, 2);
    co_await expect<protocol::HeartbeatAck>(channel);
    EXPECT_TRUE(t->rig_.leader().nodes().all().at("n1").line != nullptr);
    channel->close();
    const bool gone = co_await until([t] { return t->rig_.leader().nodes().all().at("n1").line == nullptr; });
    EXPECT_TRUE(gone);
  }(this));
}

TEST_F(ControlTest, WhoIsNotLetIn) {
  run(io_, [](ControlTest* t) -> asio::awaitable<void> {
    struct Case {
      Role role;
      std::string name;
      std::string node;
      std::string cluster;
      std::string code;
    };
    const std::vector<Case> cases{
        {Role::Agent, "n1", "n2", "lab", "CERT_ROLE"},  // another node's name
        {Role::Agent, "stranger", "stranger", "lab", "UNKNOWN_NODE"},
        {Role::Agent, "n2", "n2", "other", "WRONG_CLUSTER"},
        {Role::Leader, "second", "n3", "lab", "CERT_ROLE"},   // a leader does not dial a leader
        {Role::Operator, "op", "n4", "lab", "UNKNOWN_TYPE"},  // an operator is no agent
    };
    for (const auto& c : cases) {
      auto channel = co_await t->dial(c.role, c.name);
      auto h = t->hello(c.node);
      h.cluster = c.cluster;
      send(channel, h);
      const auto refusal = co_await expect<protocol::Refusal>(channel);
      EXPECT_EQ(refusal.code, c.code) << c.name;
      channel->close();
    }
  }(this));
}

TEST_F(ControlTest, VersionAndGarbageAreAnswered) {
  run(io_, [](ControlTest* t) -> asio::awaitable<void> {
    auto channel = co_await t->dial_local();
    channel->send({platform::Frame::Kind::Message, R"({"v":[2,0],"type":"status_request","id":9})"});
    const auto version = co_await expect<protocol::Refusal>(channel);
    EXPECT_EQ(version.code, "VERSION_UNSUPPORTED");
    EXPECT_EQ(version.re, 9u);
    channel = co_await t->dial_local();
    channel->send({platform::Frame::Kind::Message, "garbage"});
    const auto garbage = co_await expect<protocol::Refusal>(channel);
    EXPECT_EQ(garbage.code, "MALFORMED");
    channel = co_await t->dial_local();
    channel->send({platform::Frame::Kind::Message, R"({"v":[1,0],"type":"no_such","id":3})"});
    const auto unknown = co_await expect<protocol::Refusal>(channel);
    EXPECT_EQ(unknown.code, "UNKNOWN_TYPE");
    EXPECT_EQ(unknown.re, 3u);
    send(channel, protocol::StatusRequest{}, 4);  // the connection goes on
    const auto status = co_await expect<protocol::StatusReply>(channel);
    EXPECT_EQ(status.re, 4u);
  }(this));
}

TEST_F(ControlTest, RemoteOperatorsMayAskTheSame) {
  run(io_, [](ControlTest* t) -> asio::awaitable<void> {
    auto channel = co_await t->dial(Role::Operator, "op");
    send(channel, protocol::StatusRequest{}, 4);
    const auto status = co_await expect<protocol::StatusReply>(channel);
    EXPECT_EQ(status.cluster, "lab");
    send(channel, protocol::IncidentsRequest{}, 5);
    const auto incidents = co_await expect<protocol::IncidentsReply>(channel);
    EXPECT_EQ(incidents.re, 5u);
    protocol::IncidentsRequest bad;
    bad.since = "yesterday";
    send(channel, bad, 6);
    const auto refusal = co_await expect<protocol::Refusal>(channel);
    EXPECT_EQ(refusal.re, 6u);
  }(this));
}

TEST_F(ControlTest, CommandsTellProgressAndEnd) {
  rig_.on_finished = [this](const policies::FinishCommand& c) { operators_.finished(c); };
  run(io_, [](ControlTest* t) -> asio::awaitable<void> {
    auto channel = co_await t->dial_local();
    protocol::Command command;
    command.verb = protocol::Verb::Start;
    command.replica = "nosuch";
    send(channel, command, 1);
    const auto refused = co_await expect<protocol::CommandDone>(channel);
    EXPECT_EQ(refused.re, 1u);
    EXPECT_EQ(refused.verdict, Verdict::Error);
    command.replica = "a";
    send(channel, command, 2);
    const bool taken = co_await until([t] { return t->rig_.view("a").desired_running; });
    EXPECT_TRUE(taken);
    t->rig_.pass(600ms);
    t->operators_.tick();
    const auto progress = co_await expect<protocol::CommandProgress>(channel);
    EXPECT_EQ(progress.re, 2u);
    EXPECT_EQ(progress.text.rfind("a: ", 0), 0u);
    // Superseded by the opposite wish: the first one is told.
    command.verb = protocol::Verb::Stop;
    command.no_wait = true;
    send(channel, command, 3);
    bool first = false;
    bool second = false;
    for (int i = 0; i < 2; ++i) {
      const auto done = co_await expect<protocol::CommandDone>(channel);
      first = first || (done.re == 2 && done.verdict == Verdict::Error);
      second = second || (done.re == 3 && done.verdict == Verdict::Ok);
    }
    EXPECT_TRUE(first && second);
  }(this));
}

TEST_F(ControlTest, AnAuditTellsItsProgressAndEndsForAllWhoWait) {
  rig_.on_audited = [this](const protocol::AuditReply& r) { operators_.audited(r); };
  const auto n1 = rig_.connect("n1");
  run(io_, [](ControlTest* t, LeaderRig::Agent agent) -> asio::awaitable<void> {
    auto first = co_await t->dial_local();
    auto second = co_await t->dial_local();
    send(first, protocol::AuditRequest{}, 1);
    send(second, protocol::AuditRequest{}, 9);
    const bool begun = co_await until([t] { return t->operators_.audits_waited_for() == 2; });
    EXPECT_TRUE(begun);
    send(first, protocol::AuditRequest{}, 2);
    const auto again = co_await expect<protocol::Refusal>(first);
    EXPECT_EQ(again.re, 2u);
    EXPECT_EQ(agent.line->all<protocol::Audit>().size(), 1u) << "one proof for both";
    t->rig_.pass(600ms);
    t->operators_.tick();
    const auto progress = co_await expect<protocol::AuditStatus>(first);
    EXPECT_EQ(progress.nodes.size(), 4u);
    protocol::VerifyDone proof;
    proof.request = agent.line->all<protocol::Audit>().back().request;
    t->rig_.say(agent, protocol::AuditDone{proof});
    const auto done = co_await expect<protocol::AuditReply>(first);
    EXPECT_EQ(done.re, 1u);
    EXPECT_EQ(done.findings.size(), 3u) << "three nodes are not connected";
    (void)co_await expect<protocol::AuditStatus>(second);
    const auto other = co_await expect<protocol::AuditReply>(second);
    EXPECT_EQ(other.re, 9u);
  }(this, n1));
}

TEST_F(ControlTest, AnAuditEndsWithTheLastWhoWaits) {
  const auto n1 = rig_.connect("n1");
  run(io_, [](ControlTest* t, LeaderRig::Agent agent) -> asio::awaitable<void> {
    auto first = co_await t->dial_local();
    auto second = co_await t->dial_local();
    send(first, protocol::AuditRequest{true}, 1);
    const bool begun = co_await until([t] { return t->operators_.audits_waited_for() == 1; });
    EXPECT_TRUE(begun);
    send(second, protocol::AuditRequest{}, 1);
    const bool joined = co_await until([t] { return t->operators_.audits_waited_for() == 2; });
    EXPECT_TRUE(joined);
    first->close();
    const bool left = co_await until([t] { return t->operators_.audits_waited_for() == 1; });
    EXPECT_TRUE(left);
    EXPECT_TRUE(agent.line->all<protocol::EndAudit>().empty());
    second->close();
    const bool ended = co_await until([&] { return !agent.line->all<protocol::EndAudit>().empty(); });
    EXPECT_TRUE(ended);
    EXPECT_FALSE(t->rig_.leader().audit().has_value());
  }(this, n1));
}

TEST_F(ControlTest, GatewayIsGivenTheRouteAndItsTermIsHeard) {
  auto agents = rig_.serve_a();
  run(io_, [](ControlTest* t) -> asio::awaitable<void> {
    auto channel = co_await t->dial_local();
    protocol::GatewayHello hello;
    hello.pid = 77;
    hello.term = Term{30};  // it obeyed a leader that this one's store does not know
    send(channel, hello);
    const auto route = co_await expect<protocol::Route>(channel);
    EXPECT_EQ(route.term, Term{31});
    EXPECT_EQ(route.targets.size(), 1u);
    // Not applied (its disk was full): given again, later.
    t->rig_.pass(1s);
    t->seat_.tick();
    t->rig_.pass(GatewaySeat::kRepeat);
    t->seat_.tick();
    const auto again = co_await expect<protocol::Route>(channel);
    EXPECT_EQ(again, route);
    send(channel, protocol::RouteApplied{route.term, route.generation}, 2);
    protocol::GatewayStats stats;
    stats.generation = route.generation;
    stats.admitted = 5;
    send(channel, stats, 3);
    protocol::RequestFailed failed;
    failed.request = "r";
    failed.replica = "a";
    failed.finding = finding(Code::TRUNCATED, "n1", "r", "cut");
    send(channel, failed, 4);
    const bool told = co_await until([t] { return t->seat_.status().stats.admitted == 5; });
    EXPECT_TRUE(told);
    const auto status = t->seat_.status();
    EXPECT_TRUE(status.connected);
    EXPECT_EQ(status.pid, 77);
    EXPECT_EQ(status.generation, route.generation);
    // A newer gateway takes the seat.
    auto second = co_await t->dial_local();
    hello.pid = 78;
    send(second, hello);
    co_await expect<protocol::Route>(second);
    const auto end = co_await next(channel);
    EXPECT_EQ(end.type, "closed");
    EXPECT_EQ(t->seat_.pid(), 78);
    second->close();
    const bool free = co_await until([t] { return !t->seat_.connected(); });
    EXPECT_TRUE(free);
  }(this));
}

}  // namespace
}  // namespace troika::daemon
