// The two programs as processes: what their exit statuses tell, what outlives a SIGKILL, who adopts whom.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "engine/maker/model_maker.hpp"
#include "tests/unit/daemon/fake_agent.hpp"
#include "tests/unit/daemon/gateway_rig.hpp"

extern char** environ;

namespace troika::daemon {
namespace {

using namespace std::chrono_literals;

// A child process; killed when the test ends.
class Child {
 public:
  Child(std::vector<std::string> arguments, const std::string& log) {
    arguments.insert(arguments.begin(), TROIKAD);
    std::vector<char*> argv;
    for (auto& argument : arguments)
      argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    EXPECT_EQ(::posix_spawn(&pid_, TROIKAD, &actions, nullptr, argv.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    (void)wait(10s);
  }
  void signal(int number) const { ::kill(pid_, number); }
  pid_t pid() const { return pid_; }
  // The wait status; nothing if it did not end in time.
  std::optional<int> wait(std::chrono::milliseconds limit = 20s) {
    for (auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = 0;
        return status;
      }
      std::this_thread::sleep_for(10ms);
    }
    return std::nullopt;
  }
  int exit_code() {
    const auto status = wait();
    return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  }

 private:
  pid_t pid_ = 0;
};

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() : certificates_("lab"), ports_(platform::free_ports(3)) {
    const auto made = maker::make_model(folder_ / "model", maker::tiny_model());
    EXPECT_TRUE(made.ok());
    leader_tls_ = certificates_.files(platform::Role::Leader, "leader");
    write_config("");
  }
  ~ProgramTest() override {
    // The gateway outlives its leader on purpose.
    const auto pid = std::atoi(read(folder_ / "state/gateway.pid").c_str());
    if (pid > 0) ::kill(pid, SIGKILL);
  }
  void write_config(const std::string& admission) {
    std::ofstream out(config());
    out << "[cluster]\nname = \"lab\"\n[leader]\nlisten = \"127.0.0.1:" << leader_port_ << "\"\nsocket = \""
        << (folder_ / "c.sock") << "\"\nstate_dir = \"" << (folder_ / "state") << "\"\nca = \""
        << leader_tls_.ca << "\"\ncertificate = \"" << leader_tls_.certificate << "\"\nkey = \""
        << leader_tls_.key << "\"\n[gateway]\nlisten = \"127.0.0.1:" << gateway_port_
        << "\"\nmetrics = \"127.0.0.1:" << metrics_port_ << "\"\n[model]\nname = \"m\"\npath = \""
        << (folder_ / "model") << "\"\nmanifest = \"" << (folder_ / "m.json")
        << "\"\nlayers = 5\n[engine]\nkind = \"native\"\n[admission]\n"
        << admission
        << "\n[fabric]\ntopology = \"line\"\n[[node]]\nname = \"n0\"\n[[node]]\nname = "
           "\"n1\"\n[[replica]]\nname = \"a\"\n"
           "layers = [2, 3]\nnodes = [\"n0\", \"n1\"]\n";
  }
  std::string config() const { return folder_ / "cluster.toml"; }
  std::string log() const { return folder_ / "log"; }
  std::vector<std::string> gateway() const { return {"gateway", "--config", config()}; }
  std::vector<std::string> leader() const { return {"--config", config()}; }

  Reply health() {
    Connected connection(gateway_port_);
    if (!connection.ok()) return {};
    (void)connection.send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return read_reply(connection);
  }
  template <class Condition>
  static bool soon(Condition condition) {
    for (int i = 0; i < 1500; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  bool gateway_answers() {
    return soon([this] { return health().status != 0; });
  }
  int gateway_pid() { return std::atoi(read(folder_ / "state/gateway.pid").c_str()); }

  platform::Folder folder_;
  platform::Certificates certificates_;
  platform::TlsFiles leader_tls_;
  std::vector<std::uint16_t> ports_;
  std::uint16_t gateway_port_ = ports_[0], metrics_port_ = ports_[1], leader_port_ = ports_[2];
};

TEST_F(ProgramTest, HelpVersionAndBadUsage) {
  EXPECT_EQ(Child({"--help"}, log()).exit_code(), 0);
  EXPECT_EQ(Child({"--version"}, log()).exit_code(), 0);
  EXPECT_EQ(Child({"--nonsense"}, log()).exit_code(), 2);
  EXPECT_EQ(Child({"--config", folder_ / "none.toml"}, log()).exit_code(), 2);
}

TEST_F(ProgramTest, EveryProblemOfTheConfigurationIsToldAtOnce) {
  std::ofstream(config(), std::ios::app) << "[admission2]\nx = 1\n[memory]\nfloor = \"lots\"\n";
  EXPECT_EQ(Child(leader(), log()).exit_code(), 2);
  const auto told = read(log());
  EXPECT_NE(told.find("admission2"), std::string::npos) << told;
  EXPECT_NE(told.find("memory.floor"), std::string::npos) << told;
}

// Agents and operators would refuse it, and only their logs would tell.
TEST_F(ProgramTest, ACertificateOfAnotherRoleEndsLeaderAndGateway) {
  leader_tls_ = certificates_.files(platform::Role::Agent, "n1");
  write_config("");
  EXPECT_EQ(Child(leader(), log()).exit_code(), 1);
  const auto told = read(log());
  EXPECT_NE(told.find(leader_tls_.certificate), std::string::npos) << told;
  EXPECT_NE(told.find("role leader of cluster lab is needed"), std::string::npos) << told;
  EXPECT_NE(Child(gateway(), log()).exit_code(), 0);
}

TEST_F(ProgramTest, DamagedStoreEndsTheLeaderAndIsLeftAsItIs) {
  std::filesystem::create_directories(folder_ / "state");
  const std::string damage(10000, 'q');
  std::ofstream(folder_ / "state/troika.sqlite") << damage;
  EXPECT_EQ(Child(leader(), log()).exit_code(), 2);
  EXPECT_EQ(read(folder_ / "state/troika.sqlite"), damage);
  EXPECT_NE(read(log()).find("state/troika.sqlite"), std::string::npos);
}

TEST_F(ProgramTest, LeaderIsOneAndItsGatewayOutlivesIt) {
  Child first(leader(), log());
  ASSERT_TRUE(gateway_answers()) << read(log());
  const auto pid = gateway_pid();
  EXPECT_EQ(Child(leader(), log()).exit_code(), 1);
  EXPECT_NE(read(log()).find("held by pid " + std::to_string(first.pid())), std::string::npos);
  first.signal(SIGKILL);
  ASSERT_TRUE(first.wait().has_value());
  EXPECT_EQ(health().status, 503);
  Child second(leader(), log());
  ASSERT_TRUE(soon([&] { return read(log()).find("term 2 is in force") != std::string::npos; }))
      << read(log());
  ASSERT_TRUE(soon([&] { return read(log()).find("a gateway runs already") != std::string::npos; }))
      << read(log());
  EXPECT_EQ(gateway_pid(), pid);
  // A gateway that dies is started again.
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(soon([&] { return gateway_pid() != pid && gateway_pid() != 0 && health().status != 0; }))
      << read(log());
  second.signal(SIGTERM);
  EXPECT_EQ(second.exit_code(), 0);
  EXPECT_EQ(health().status, 503);  // it answers on
}

TEST_F(ProgramTest, GatewayThatCannotStartIsAnIncidentUntilItCan) {
  std::filesystem::create_directories(folder_ / "state");
  std::ofstream(folder_ / "state/gateway.sqlite") << std::string(10000, 'q');
  Child child(leader(), log());
  const auto count = [this](const std::string& where) {
    auto database =
        platform::Database::open(folder_ / "state/troika.sqlite", platform::Database::Mode::ReadOnly);
    if (!database.ok()) return std::int64_t{-1};
    auto query = database->prepare(
        "SELECT count(*) FROM incidents WHERE subject = 'gateway' AND title LIKE "
        "'%status 2%gateway.sqlite%' AND " +
        where);
    if (!query.ok()) return std::int64_t{-1};
    const auto row = query->step();
    return row.ok() && *row ? query->integer(0) : std::int64_t{-1};
  };
  ASSERT_TRUE(soon([&] { return count("closed IS NULL") == 1; })) << read(log());
  std::filesystem::rename(folder_ / "state/gateway.sqlite", folder_ / "state/damaged");
  ASSERT_TRUE(soon([&] { return count("closed IS NOT NULL") == 1; })) << read(log());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/gateway.last-words"));
  EXPECT_NE(health().status, 0);
}

TEST_F(ProgramTest, GatewayWithoutATokenizerSaysSo) {
  std::filesystem::remove(folder_ / "model/tokenizer.json");
  EXPECT_EQ(Child(gateway(), log()).exit_code(), 2);
  EXPECT_NE(read(log()).find("tokenizer.json"), std::string::npos) << read(log());
}

TEST_F(ProgramTest, FullDiskEndsTheLeader) {
  // SQLite's write-ahead log may not grow beyond this, as on a full disk.
  const auto limits = [](rlim_t bytes) {
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  ::signal(SIGXFSZ, SIG_IGN);
  {
    Child first(leader(), log());
    ASSERT_TRUE(gateway_answers());
    first.signal(SIGTERM);
    EXPECT_EQ(first.exit_code(), 0);
  }
  limits(4096);
  Child second(leader(), "/dev/null");
  limits(RLIM_INFINITY);
  const auto code = second.exit_code();
  EXPECT_TRUE(code == 1 || code == 2) << code;
  // Nothing is lost: with room again it starts as before.
  Child third(leader(), log());
  EXPECT_TRUE(soon([&] { return read(log()).find("term 2 is in force") != std::string::npos; }))
      << read(log());
}

// The agent's side of the gateway's requests, in this process.
class Served {
 public:
  Served(platform::Certificates& certificates, FakeAgent::Script script)
      : agent_(io_, certificates.context(platform::Role::Agent, "n0"), std::move(script)),
        thread_([this] { io_.run(); }) {}
  ~Served() {
    io_.stop();
    thread_.join();
  }
  FakeAgent& agent() { return agent_; }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  FakeAgent agent_;
  std::thread thread_;
};

void store_route(const std::string& state, const std::string& address) {
  protocol::Route route;
  route.term = Term{1};
  route.generation = 1;
  protocol::RouteTarget target;
  target.replica = "a";
  target.epoch = Epoch{1};
  target.relay_address = address;
  target.node = "n0";
  route.targets.push_back(target);
  std::filesystem::create_directories(state);
  std::ofstream(state + "/gateway-route.json") << protocol::to_json(route).dump();
}

TEST_F(ProgramTest, RateIsKeptAcrossAKillOfTheGateway) {
  write_config("rate = 0.5\nburst = 1\n");
  Served served(certificates_, whole_answer(200, "{}"));
  // The ledger exists from an earlier run, so that the route alone does not count as a lost one.
  {
    Child early(gateway(), log());
    ASSERT_TRUE(gateway_answers()) << read(log());
    early.signal(SIGTERM);
    EXPECT_EQ(early.exit_code(), 0);
  }
  store_route(folder_ / "state", served.agent().address());
  const auto request = post("/v1/chat/completions", GatewayRig::body("\"max_tokens\":5"));
  const Instant begin = platform::now();
  {
    Child first(gateway(), log());
    ASSERT_TRUE(gateway_answers()) << read(log());
    EXPECT_EQ(health().status, 200);  // without a leader, as it was told last
    EXPECT_EQ(ask(gateway_port_, request).status, 200);
    first.signal(SIGKILL);
    ASSERT_TRUE(first.wait().has_value());
  }
  Child second(gateway(), log());
  ASSERT_TRUE(gateway_answers()) << read(log());
  EXPECT_TRUE(soon([&] { return ask(gateway_port_, request).status == 200; }));
  const auto arrivals = served.agent().arrivals();
  ASSERT_EQ(arrivals.size(), 2u);
  // Not from the first arrival: the agent may have noted it late.
  EXPECT_GE(arrivals[1].at - begin, 2s);
}

TEST_F(ProgramTest, ALostLedgerIsNotAnUnusedRate) {
  Served served(certificates_, whole_answer(200, "{}"));
  store_route(folder_ / "state", served.agent().address());
  const auto request = post("/v1/chat/completions", GatewayRig::body("\"max_tokens\":5"));
  {
    write_config("rate = 0.01\nburst = 1\n");
    Child child(gateway(), log());
    ASSERT_TRUE(gateway_answers()) << read(log());
    EXPECT_EQ(ask(gateway_port_, request).status, 429);
  }
  for (const auto* file : {"gateway.sqlite", "gateway.sqlite-wal", "gateway.sqlite-shm"})
    std::filesystem::remove(folder_ / "state/" + file);
  write_config("rate = 5\nburst = 1\n");
  Child child(gateway(), log());
  ASSERT_TRUE(gateway_answers()) << read(log());
  EXPECT_TRUE(soon([&] { return ask(gateway_port_, request).status == 200; }));
}

TEST_F(ProgramTest, GatewayFinishesWhatIsInHandBeforeItEnds) {
  Gate ending;
  Served served(certificates_, [&ending](platform::ChannelPtr c) -> asio::awaitable<void> {
    FakeAgent::head(c, 200, kStreamType);
    FakeAgent::data(c, chunk_event("Hello"));
    co_await ending.opened();
    FakeAgent::data(c, kFinishEvent + kDoneEvent);
    FakeAgent::end(c, true);
  });
  // A ledger that is lost counts as a burst used up: the request may have to wait for the next place.
  write_config("rate = 100\nburst = 10\nqueue = 1\nqueue_wait = \"20s\"\n");
  store_route(folder_ / "state", served.agent().address());
  Child child(gateway(), log());
  ASSERT_TRUE(gateway_answers()) << read(log());
  Connected client(gateway_port_);
  ASSERT_TRUE(
      client.send(post("/v1/chat/completions", GatewayRig::body("\"stream\":true,\"max_tokens\":5"))));
  ASSERT_TRUE(soon([&] { return served.agent().arrivals().size() == 1; })) << read(log());
  child.signal(SIGTERM);
  ASSERT_TRUE(soon([&] { return read(log()).find("ending; 1 requests in hand") != std::string::npos; }))
      << read(log());
  ending.open();
  EXPECT_EQ(read_reply(client).body, chunk_event("Hello") + kFinishEvent + kDoneEvent);
  EXPECT_EQ(child.exit_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/gateway.pid"));
}

}  // namespace
}  // namespace troika::daemon
