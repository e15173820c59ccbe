// The agent may be killed and come back at any time; stages do not notice, and nothing that happened is lost.
#include "tests/unit/agent/rig.hpp"

namespace troika::agent {
namespace {

TEST_F(AgentTest, AdoptsItsStagesAfterAKill) {
  connect();
  const auto ready = start_and_await_ready();
  kill_agent();
  ASSERT_EQ(marked().size(), 1u) << "the stage goes on";
  const auto hello = connect();
  ASSERT_EQ(hello.stages.size(), 1u);
  EXPECT_EQ(hello.stages[0].pid, ready.pid);
  EXPECT_EQ(hello.stages[0].epoch.count, 7u);
  EXPECT_EQ(hello.stages[0].state, StageState::Ready);
  ASSERT_EQ(::kill(static_cast<pid_t>(ready.pid), SIGUSR1), 0);
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_TRUE(exited->exit.known);
  EXPECT_EQ(exited->exit.code, 42) << "the true status, from its keeper";
  EXPECT_TRUE(await_state(StageState::Released));
}

// Killed at whatever instant of a start: what was started is found again, and ends when it is told to.
TEST_F(AgentTest, FindsWhatItWasJustStarting) {
  for (std::uint64_t epoch = 1; epoch <= 6; ++epoch) {
    connect();
    send(start_message(Epoch{epoch}));
    const std::size_t events = events_.size();
    await([&] { return events_.size() >= events + epoch / 3; }, "the start");  // none, one or two events
    kill_agent();
    connect();
    send(stop_message(0, Epoch{epoch}));
    ASSERT_TRUE(await_state(StageState::Released, Epoch{epoch}));
    EXPECT_TRUE(marked().empty());
    EXPECT_TRUE(platform::eventually([&] { return keepers() == 0; }));
    kill_agent();
  }
}

TEST_F(AgentTest, LearnsOfAnEndThatItDidNotSee) {
  connect();
  const auto ready = start_and_await_ready();
  kill_agent();
  // A crash that the sanitizers' runtimes leave alone: they catch SIGSEGV and exit with a code instead.
  ASSERT_EQ(::kill(static_cast<pid_t>(ready.pid), SIGABRT), 0);
  EXPECT_TRUE(platform::eventually([&] { return marked().empty() && keepers() == 0; }));
  connect();
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_TRUE(exited->exit.known);
  EXPECT_EQ(exited->exit.signal, SIGABRT);
  EXPECT_TRUE(has(exited->findings, Code::STAGE_DIED));
  EXPECT_TRUE(await_state(StageState::Released));
  // Told and acknowledged: it is not told again.
  await([&] { return ::access((folder_ / "run/ended/a-0-7").c_str(), F_OK) == 0; },
        "the acknowledgement's effect");
  kill_agent();
  const std::size_t before = events_.size();
  const auto hello = connect();
  EXPECT_TRUE(hello.stages.empty());
  const std::size_t beats = heartbeats_;
  await([&] { return heartbeats_ > beats + 3; }, "heartbeats");
  EXPECT_EQ(events_.size(), before);
}

TEST_F(AgentTest, StopsAStageThatItAdopted) {
  habits_ = "ignore-term";
  connect();
  start_and_await_ready();
  kill_agent();
  connect();
  send(stop_message(200));
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit.signal, SIGKILL);
  EXPECT_TRUE(await_state(StageState::Released));
  EXPECT_TRUE(marked().empty());
}

// The keeper was killed: the kernel kills its stage, and what the stage had started is swept.
TEST_F(AgentTest, SweepsOrphansOfAKilledKeeper) {
  habits_ = "orphans";
  connect();
  start_and_await_ready();
  // The first of its two forks ends when it pleases.
  EXPECT_TRUE(platform::eventually([&] { return marked().size() == 2; }));
  const auto record = keeper::read_record(platform::content_of(stage_directory() + "/record"));
  ASSERT_TRUE(record.ok());
  ASSERT_TRUE(platform::signal_process(record->keeper, SIGKILL).ok());
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_FALSE(exited->exit.known);
  EXPECT_TRUE(has(exited->findings, Code::STAGE_DIED));
  EXPECT_TRUE(has(exited->findings, Code::ORPHAN));
  EXPECT_TRUE(await_state(StageState::Released));
  EXPECT_TRUE(marked().empty());
}

TEST_F(AgentTest, SweepsOrphansThatItFindsAtItsStart) {
  habits_ = "orphans";
  connect();
  start_and_await_ready();
  EXPECT_TRUE(platform::eventually([&] { return marked().size() == 2; }));
  const auto record = keeper::read_record(platform::content_of(stage_directory() + "/record"));
  kill_agent();
  ASSERT_TRUE(platform::signal_process(record->keeper, SIGKILL).ok());
  EXPECT_TRUE(platform::eventually([&] { return marked().size() == 1; }));
  connect();
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_FALSE(exited->exit.known);
  EXPECT_TRUE(has(exited->findings, Code::ORPHAN));
  EXPECT_TRUE(await_state(StageState::Released));
  EXPECT_TRUE(marked().empty());
}

TEST_F(AgentTest, SweepsStagesWhoseRunDirectoryIsGoneOrBroken) {
  connect();
  start_and_await_ready();
  kill_agent();
  ASSERT_TRUE(platform::remove_tree(folder_ / "run").ok());
  connect();
  auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_FALSE(exited->exit.known);
  EXPECT_TRUE(await_state(StageState::Released));
  EXPECT_TRUE(marked().empty());

  send(start_message(Epoch{8}));
  ASSERT_TRUE(await_state(StageState::Ready, Epoch{8}));
  kill_agent();
  ASSERT_TRUE(platform::write_file_durably(stage_directory("a-0-8") + "/stage.json", "{").ok());
  connect();
  exited = await_state(StageState::Exited, Epoch{8});
  ASSERT_TRUE(exited);
  EXPECT_TRUE(await_state(StageState::Released, Epoch{8}));
  EXPECT_TRUE(marked().empty());
}

TEST_F(AgentTest, EventsWaitOnDiskUntilTheyAreAcknowledged) {
  acknowledge_events_ = false;
  connect();
  const auto ready = start_and_await_ready();
  listener_.reset();  // the leader goes
  channel_->close();
  channel_.reset();
  ASSERT_EQ(::kill(static_cast<pid_t>(ready.pid), SIGUSR1), 0);
  EXPECT_TRUE(platform::eventually([&] { return marked().empty(); }));
  EXPECT_TRUE(platform::eventually([&] { return keepers() == 0; }));
  await([&] { return agent_log().find("ended with code 42") != std::string::npos; },
        "the agent sees the end");
  kill_agent();
  events_.clear();
  seen_ = 0;
  acknowledge_events_ = true;
  listen();  // it is back
  connect();
  EXPECT_TRUE(await_state(StageState::Ready)) << "what was not acknowledged comes again";
  const auto exited = await_state(StageState::Exited);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->exit.code, 42);
  EXPECT_TRUE(await_state(StageState::Released));
  std::set<std::string> names;
  for (const auto& event : events_)
    names.insert(event.event);
  EXPECT_EQ(names.size(), events_.size()) << "each has a name of its own";
}

TEST_F(AgentTest, SigtermLeavesTheStagesRunning) {
  connect();
  start_and_await_ready();
  kill_agent(SIGTERM);
  EXPECT_TRUE(WIFEXITED(agent_status_));
  EXPECT_EQ(WEXITSTATUS(agent_status_), 0);
  EXPECT_EQ(marked().size(), 1u);
}

TEST_F(AgentTest, OneAgentAStateDirectory) {
  connect();
  auto plan = platform::plan_of({AGENT_PROGRAM, "--config", folder_ / "agent.toml"});
  const auto second = platform::spawn(plan);
  ASSERT_TRUE(second.ok());
  const int status = platform::wait_status(*second);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

// A fence that cannot be read is no empty one: while something runs, nothing may start.
TEST_F(AgentTest, ABrokenFenceStartsNothingWhileAStageIsHeld) {
  connect();
  start_and_await_ready();
  kill_agent();
  ASSERT_TRUE(platform::write_file_durably(folder_ / "state/fence.json", "{\"format\":1,\"highest").ok());
  const auto hello = connect();
  ASSERT_EQ(hello.stages.size(), 1u);
  send(start_message(Epoch{8}));
  await([&] { return !refusals_.empty(); }, "a refusal");
  EXPECT_EQ(refusals_[0].code, "CANNOT_TELL");
  send(stop_message());
  EXPECT_TRUE(await_state(StageState::Released));
  send(start_message(Epoch{8}));
  EXPECT_TRUE(await_state(StageState::Ready, Epoch{8}));
}

}  // namespace
}  // namespace troika::agent
