// A stage from the leader's order until nothing of it is left.
#include <sys/stat.h>

#include "tests/unit/agent/rig.hpp"

namespace troika::agent {
namespace {

TEST_F(AgentTest, StartsAStageAndSaysHowFarItIs) {
  const auto hello = connect();
  EXPECT_EQ(hello.node, node_);
  EXPECT_EQ(hello.cluster, "lab");
  EXPECT_EQ(hello.engines, std::vector<std::string>{"native"});
  EXPECT_EQ(hello.relay_address, "127.0.0.1:" + std::to_string(relay_));
  EXPECT_EQ(hello.link_address, "127.0.0.1:" + std::to_string(link_));
  EXPECT_TRUE(hello.stages.empty());
  send(start_message());
  EXPECT_TRUE(await_state(StageState::Starting));
  EXPECT_TRUE(await_state(StageState::Loading));
  const auto ready = await_state(StageState::Ready);
  ASSERT_TRUE(ready);
  EXPECT_GT(ready->pid, 0);
  EXPECT_EQ(ready->progress.count, 1000u);
  EXPECT_NE(ready->detail.find("ready rank=0 epoch=7"), std::string::npos);
  await([&] { return heartbeat_.stages.size() == 1 && heartbeat_.stages[0].state == StageState::Ready; },
        "a heartbeat with the stage");
  EXPECT_GT(heartbeat_.facts.memory_total.count, 0u);
  ASSERT_EQ(heartbeat_.facts.links.size(), 1u);
  EXPECT_EQ(heartbeat_.facts.links[0].state, "up");

  // The command line is the contract with the engine; the link's key is in none of it and gone once the stage
  // is ready.
  const std::string line = platform::command_line(static_cast<int>(ready->pid), 4096);
  EXPECT_NE(line.find("--replica a --rank 0 --ranks 3 --epoch 7 --layers 0:14 --cluster lab "
                      "--served-model-name lab-model "
                      "--context-length 4096 --chunked-prefill 512 --max-running 8"),
            std::string::npos)
      << line;
  EXPECT_FALSE(std::ifstream(stage_directory() + "/link.key").good());
  EXPECT_EQ(
      ::system(("grep -rq aaaaaaaaaaaaaaaa " + (folder_ / "run") + " " + (folder_ / "agent.log")).c_str()) ==
          0,
      false)
      << "the key is in a file";

  send(stop_message());
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_TRUE(exited->exit.known);
  EXPECT_TRUE(exited->exit.requested);
  EXPECT_EQ(exited->exit.code, 0);
  EXPECT_TRUE(exited->findings.empty());
  EXPECT_TRUE(await_state(StageState::Released));
  EXPECT_TRUE(marked().empty());
  await([&] { return std::ifstream(folder_ / "run/ended/a-0-7/log").good(); }, "its log among the evidence");
}

// Case D10: an exit that nobody asked for is a failure whatever its code. Mode 66: 137 does not say who.
TEST_F(AgentTest, ReportsTheTrueStatusOfAnEndThatNobodyAskedFor) {
  connect();
  const auto ready = start_and_await_ready();
  ASSERT_EQ(::kill(static_cast<pid_t>(ready.pid), SIGKILL), 0);
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_TRUE(exited->exit.known);
  EXPECT_EQ(exited->exit.signal, SIGKILL);
  EXPECT_FALSE(exited->exit.requested);
  EXPECT_TRUE(has(exited->findings, Code::STAGE_DIED));
  EXPECT_TRUE(has(exited->findings, Code::KILL_UNCLAIMED));
  EXPECT_TRUE(await_state(StageState::Released));

  send(start_message(Epoch{8}));
  const auto again = await_state(StageState::Ready, Epoch{8});
  ASSERT_TRUE(again);
  ASSERT_EQ(::kill(static_cast<pid_t>(again->pid), SIGTERM), 0);  // the stub then ends with code 0
  const auto zero = await_state(StageState::Exited, Epoch{8});
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->exit.code, 0);
  EXPECT_EQ(zero->exit.signal, 0);
  EXPECT_TRUE(has(zero->findings, Code::STAGE_DIED));
}

TEST_F(AgentTest, PassesOnWhyAStageRefusesItsModel) {
  habits_ = "refuse";
  connect();
  send(start_message());
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit.code, 3);
  EXPECT_NE(exited->detail.find("DeepseekV4ForCausalLM is not supported"), std::string::npos);
  ASSERT_FALSE(exited->findings.empty());
  EXPECT_NE(exited->findings[0].message.find("DeepseekV4ForCausalLM"), std::string::npos);
  EXPECT_TRUE(await_state(StageState::Released));
}

TEST_F(AgentTest, SaysWhenTheEngineIsNotThere) {
  program_ = folder_ / "no-such-engine";
  connect();
  send(start_message());
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  ASSERT_FALSE(exited->findings.empty());
  EXPECT_EQ(exited->findings[0].code, Code::START_FAILED);
  EXPECT_NE(exited->findings[0].message.find("no-such-engine: No such file"), std::string::npos)
      << exited->findings[0].message;
  EXPECT_TRUE(await_state(StageState::Released));
}

// Mode 57: nothing that a stage left behind survives it.
TEST_F(AgentTest, SweepsWhatAStageLeavesBehind) {
  habits_ = "daemon shm";
  connect();
  const auto ready = start_and_await_ready();
  // The first of its two forks ends when it pleases.
  EXPECT_TRUE(platform::eventually([&] { return marked().size() == 2; }));
  const std::string shared =
      "/dev/shm/" + shared_memory_prefix("lab", node_, {{"a", Rank{0}}, Epoch{7}}) + "weights";
  EXPECT_TRUE(std::ifstream(shared).good()) << shared;
  ASSERT_EQ(::kill(static_cast<pid_t>(ready.pid), SIGUSR1), 0);
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit.code, 42);
  EXPECT_TRUE(await_state(StageState::Released));
  EXPECT_TRUE(marked().empty());
  EXPECT_FALSE(std::ifstream(shared).good()) << "mode 58";
}

// Two epochs never overlap: the next one is refused for as long as the first does not die.
TEST_F(AgentTest, RefusesTheNextEpochWhileTheFirstWillNotDie) {
  habits_ = "ignore-term";
  connect();
  start_and_await_ready();
  send(stop_message(3000));
  const auto id = send(start_message(Epoch{8}));
  await([&] { return !refusals_.empty(); }, "a refusal");
  EXPECT_EQ(refusals_[0].re, id);
  EXPECT_EQ(refusals_[0].code, "BUSY");
  EXPECT_EQ(marked().size(), 1u);
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit.signal, SIGKILL);
  EXPECT_TRUE(exited->exit.requested);
  EXPECT_TRUE(has(exited->findings, Code::KILLED_BY_US));
  EXPECT_TRUE(await_state(StageState::Released));
  send(start_message(Epoch{8}));
  EXPECT_TRUE(await_state(StageState::Ready, Epoch{8}));
}

// Case D29: a process that SIGKILL does not end (here: frozen) is said to be left until it is really gone.
TEST_F(AgentTest, SaysNotReleasedUntilItIsReallyGone) {
  const std::string freezer = "/sys/fs/cgroup/freezer/troika-test-" + node_;
  if (::mkdir(freezer.c_str(), 0755) != 0) GTEST_SKIP() << "no freezer of cgroup v1 here";
  const auto write = [&](const std::string& file, const std::string& text) {
    std::ofstream(freezer + "/" + file) << text;
  };
  connect();
  const auto ready = start_and_await_ready();
  write("cgroup.procs", std::to_string(ready.pid));
  write("freezer.state", "FROZEN");
  send(stop_message(100));
  const auto left = await_state(StageState::NotReleased);
  ASSERT_TRUE(left);
  ASSERT_TRUE(has(left->findings, Code::NOT_RELEASED));
  EXPECT_NE(left->findings[0].message.find(std::to_string(ready.pid)), std::string::npos);
  send(start_message(Epoch{8}));
  await([&] { return !refusals_.empty(); }, "a refusal");
  EXPECT_EQ(refusals_[0].code, "BUSY");
  write("freezer.state", "THAWED");
  const auto released = await_state(StageState::Released);
  ASSERT_TRUE(released);
  EXPECT_TRUE(released->exit.known);
  EXPECT_EQ(released->exit.signal, SIGKILL);
  EXPECT_TRUE(released->exit.requested);
  EXPECT_FALSE(has(released->findings, Code::NOT_RELEASED));
  EXPECT_TRUE(platform::eventually([&] { return ::rmdir(freezer.c_str()) == 0; }));
}

TEST_F(AgentTest, StopIsIdempotentAndAnsweredWhenNothingIsThere) {
  connect();
  send(stop_message(0, Epoch{5}));
  const auto nothing = await_state(StageState::Released, Epoch{5});
  ASSERT_TRUE(nothing);
  send(stop_message(0, Epoch{5}));
  EXPECT_TRUE(await_state(StageState::Released, Epoch{5}));
  // What was told to stop may not start any more.
  send(start_message(Epoch{5}));
  await([&] { return !refusals_.empty(); }, "a refusal");
  EXPECT_EQ(refusals_[0].code, "STALE_EPOCH");
  EXPECT_TRUE(marked().empty());
}

TEST_F(AgentTest, ObeysNoLeaderAndNoEpochOfThePast) {
  term_ = Term{5};
  connect();
  start_and_await_ready();
  auto old = stop_message();
  old.term = Term{4};
  const auto id = send(old);
  await([&] { return !refusals_.empty(); }, "a refusal");
  EXPECT_EQ(refusals_[0].re, id);
  EXPECT_EQ(refusals_[0].code, "STALE_TERM");
  send(start_message(Epoch{6}));
  await([&] { return refusals_.size() == 2; }, "a refusal");
  EXPECT_EQ(refusals_[1].code, "STALE_EPOCH");
  EXPECT_EQ(marked().size(), 1u) << "the stage goes on";
  // It is written down: another agent process refuses the same.
  kill_agent();
  const auto hello = connect();
  EXPECT_EQ(hello.highest_term.count, 5u);
  EXPECT_EQ(hello.highest_epochs.at("a").count, 7u);
}

TEST_F(AgentTest, RefusesEnginesWithoutAProfileAndPlansThatAreNone) {
  connect();
  auto other = start_message();
  other.engine.kind = "sglang";
  send(other);
  await([&] { return refusals_.size() == 1; }, "a refusal");
  EXPECT_EQ(refusals_[0].code, "NOT_ALLOWED");
  std::uint64_t epoch = 10;
  const auto refused = [&](const std::function<void(protocol::StartStage&)>& spoil) {
    auto start = start_message(Epoch{epoch++});
    spoil(start);
    const std::size_t before = refusals_.size();
    send(start);
    await([&] { return refusals_.size() == before + 1; }, "a refusal");
    EXPECT_EQ(refusals_.back().code, "MALFORMED") << refusals_.back().message;
  };
  refused([](auto& s) { s.engine.model = "--evil"; });
  refused([](auto& s) { s.engine.model = "x; reboot"; });
  refused([](auto& s) { s.next_link = "-o:1"; });
  refused([](auto& s) { s.next_link = "host:99999"; });
  refused([](auto& s) { s.link_key = "short"; });
  refused([](auto& s) { s.engine.layers = {}; });
  refused([](auto& s) { s.engine.layers = {43, 0}; });
  refused([](auto& s) { s.rank = Rank{3}; });
  refused([](auto& s) { s.engine.max_running = 0; });
  EXPECT_TRUE(marked().empty());
}

// Mode 59, case D13.
TEST_F(AgentTest, NamesWhoHasThePortBeforeItStartsAnything) {
  asio::ip::tcp::acceptor foreign{io_, {asio::ip::make_address("127.0.0.1"), api_}};
  connect();
  send(start_message());
  await([&] { return !refusals_.empty(); }, "a refusal");
  EXPECT_EQ(refusals_[0].code, "PORT_FOREIGN");
  EXPECT_NE(refusals_[0].message.find("process " + std::to_string(::getpid())), std::string::npos)
      << refusals_[0].message;
  EXPECT_NE(refusals_[0].message.find("unit_agent"), std::string::npos);
  EXPECT_TRUE(marked().empty());
  foreign.close();
  send(start_message(Epoch{8}));
  EXPECT_TRUE(await_state(StageState::Ready, Epoch{8}));
}

}  // namespace
}  // namespace troika::agent
