// A real agent with a stub engine, and a leader that the test plays, over real TLS.
#pragma once

#include <deque>
#include <fstream>
#include <list>
#include <map>

#include "agent/keeper/record.hpp"
#include "agent/model/manifest.hpp"
#include "agent/stage/identity.hpp"
#include "platform/tree.hpp"
#include "protocol/codec.hpp"
#include "tests/unit/platform/net.hpp"
#include "tests/unit/process/wait.hpp"

namespace troika::agent {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using protocol::StageState;

class AgentTest : public testing::Test {
 public:
  static constexpr auto kLimit = 60s;  // only a broken product reaches it

  AgentTest()
      : node_("n" + platform::random_hex(4)),
        certificates_("lab"),
        leader_(certificates_.context(platform::Role::Leader, "leader")) {
    const platform::TlsFiles agent = certificates_.files(platform::Role::Agent, node_);
    const auto ports = platform::free_ports(3);
    api_ = ports[0];
    link_ = ports[1];
    relay_ = ports[2];
    EXPECT_TRUE(platform::make_directories(folder_ / "model").ok());
    tls_lines_ = "[tls]\nca = \"" + agent.ca + "\"\ncertificate = \"" + agent.certificate + "\"\nkey = \"" +
                 agent.key + "\"\n";
    listen();
  }
  ~AgentTest() override {
    kill_agent();
    // Everything of this node: keepers end with their stages.
    for (const auto& one : marked())
      (void)platform::signal_process(one.id, SIGKILL);
    EXPECT_TRUE(platform::eventually([&] { return marked().empty(); }));
    EXPECT_TRUE(platform::eventually([&] { return keepers() == 0; }));
  }

  std::vector<platform::Marked> marked() const {
    auto found = platform::find_marked("lab/" + node_ + "/");
    return found.ok() ? *found : std::vector<platform::Marked>{};
  }
  std::size_t keepers() const {
    const auto all = platform::read_processes();
    std::size_t count = 0;
    for (const auto& process : *all)
      if (platform::command_line(process.id.pid, 4096).find("--run-dir " + folder_.path()) !=
          std::string::npos)
        ++count;
    return count;
  }

  // ---- the agent

  std::string config_text() const {
    return "[node]\ncluster = \"lab\"\nname = \"" + node_ + "\"\nstate_dir = \"" + (folder_ / "state") +
           "\"\nrun_dir = \"" + (folder_ / "run") +
           "\"\nkeeper = \"" KEEPER_PROGRAM "\"\n[leader]\naddresses = [\"127.0.0.1:" +
           std::to_string(listener_->port()) + "\"]\n" + tls_lines_ +
           "[relay]\nlisten = \"127.0.0.1:" + std::to_string(relay_) + "\"\n[model]\npath = \"" +
           (folder_ / "model") + "\"\n[fabric]\ninterfaces = [\"lo\"]\n[[engine]]\nkind = \"native\"\n" +
           "program = \"" + program_ + "\"\napi = \"127.0.0.1:" + std::to_string(api_) +
           "\"\nlink = \"127.0.0.1:" + std::to_string(link_) + "\"\nenvironment = { STUB_HABITS = \"" +
           habits_ + "\" }\n";
  }
  void start_agent() {
    ASSERT_TRUE(platform::write_file_durably(folder_ / "agent.toml", config_text()).ok());
    platform::UniqueFd words{
        ::open((folder_ / "agent.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    auto plan = platform::plan_of({AGENT_PROGRAM, "--config", folder_ / "agent.toml"});
    plan.error = words.get();
    auto child = platform::spawn(plan);
    ASSERT_TRUE(child.ok()) << child.error().message();
    agent_ = *std::move(child);
  }
  void kill_agent(int signal = SIGKILL) {
    if (agent_.id.pid == 0) return;
    (void)platform::signal_process(agent_.id, signal);
    agent_status_ = platform::wait_status(agent_);
    agent_ = {};
  }
  std::string agent_log() const { return platform::content_of(folder_ / "agent.log"); }

  // Starts it and waits for its Hello.
  protocol::Hello connect() {
    hello_.reset();
    start_agent();
    await([&] { return hello_.has_value(); }, "hello");
    return hello_ ? *hello_ : protocol::Hello{};
  }

  // ---- the leader

  void listen() {
    auto listener = platform::listen_tls(io_.get_executor(), "127.0.0.1", leader_port_, leader_,
                                         [this](platform::ChannelPtr channel) { return lead(channel); });
    ASSERT_TRUE(listener.ok()) << listener.error().message();
    listener_ = *std::move(listener);
    leader_port_ = listener_->port();
  }
  asio::awaitable<void> lead(platform::ChannelPtr channel) {
    while (true) {
      auto frame = co_await channel->read(60s);
      if (!frame.ok()) break;
      const auto envelope = protocol::parse_envelope(frame->payload);
      EXPECT_TRUE(envelope.ok());
      if (envelope.ok()) take(channel, *envelope);
    }
    if (channel_ == channel) channel_.reset();
  }
  void take(const platform::ChannelPtr& channel, const protocol::Envelope& envelope) {
    if (envelope.type == "hello") {
      channel_ = channel;
      hello_ = *protocol::decode<protocol::Hello>(envelope);
      if (term_.count != 0) send(protocol::Welcome{term_, "test", 100});
    } else if (envelope.type == "heartbeat") {
      heartbeat_ = *protocol::decode<protocol::Heartbeat>(envelope);
      ++heartbeats_;
      if (acknowledge_heartbeats_) send(protocol::HeartbeatAck{});
    } else if (envelope.type == "stage_event") {
      events_.push_back(*protocol::decode<protocol::StageEvent>(envelope));
      if (acknowledge_events_) send(protocol::StageEventAck{events_.back().event});
    } else if (envelope.type == "refusal") {
      refusals_.push_back(*protocol::decode<protocol::Refusal>(envelope));
    } else if (envelope.type == "verify_done") {
      verified_ = *protocol::decode<protocol::VerifyDone>(envelope);
    } else if (envelope.type == "audit_done") {
      audited_ = protocol::decode<protocol::AuditDone>(envelope)->proof;
    } else if (envelope.type == "audit_progress") {
      ++progresses_;
    } else if (envelope.type == "probe_done") {
      probed_ = *protocol::decode<protocol::ProbeDone>(envelope);
    } else if (envelope.type == "verify_progress") {
      ++progresses_;
    } else {
      ADD_FAILURE() << "unexpected " << envelope.type;
    }
  }
  template <class T>
  std::uint64_t send(const T& message) {
    const std::uint64_t id = next_id_++;
    if (channel_) channel_->send({platform::Frame::Kind::Message, protocol::encode(message, id)});
    return id;
  }
  // Runs the leader until the condition holds.
  bool await(const std::function<bool()>& condition, const std::string& what) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) {
        throw std::runtime_error("never came: " + what + "\n" + agent_log());
      }
      if (agent_.id.pid != 0 && !platform::alive(agent_.id))
        throw std::runtime_error("the agent ended while this was awaited: " + what + "\n" + agent_log());
      io_.restart();
      io_.run_one_for(20ms);
    }
    return true;
  }
  // The next event (not looked at before) in this state.
  std::optional<protocol::StageReport> await_state(StageState state, Epoch epoch = Epoch{7}) {
    std::optional<protocol::StageReport> found;
    await(
        [&] {
          while (seen_ < events_.size() && !found) {
            const auto& report = events_[seen_++].report;
            if (report.state == state && report.epoch == epoch) found = report;
          }
          return found.has_value();
        },
        std::string(protocol::name(state)));
    return found;
  }

  protocol::StartStage start_message(Epoch epoch = Epoch{7}, std::uint32_t rank = 0) const {
    protocol::StartStage start;
    start.request = 1;
    start.term = term_;
    start.replica = "a";
    start.rank = Rank{rank};
    start.epoch = epoch;
    start.engine = {"native", "lab-model", Tokens{4096}, Tokens{512}, 8, {14, 14, 15}, 0, 0};
    start.next_link = "127.0.0.1:9";
    start.link_key = std::string(64, 'a');
    return start;
  }
  protocol::StopStage stop_message(std::uint32_t grace_ms = 10000, Epoch epoch = Epoch{7}) const {
    return {2, term_, "a", Rank{0}, epoch, grace_ms, "a test"};
  }
  protocol::StageReport start_and_await_ready() {
    send(start_message());
    const auto ready = await_state(StageState::Ready);
    return ready ? *ready : protocol::StageReport{};
  }
  std::string stage_directory(const std::string& folder = "a-0-7") const {
    return folder_ / ("run/stages/" + folder);
  }
  bool has(const std::vector<Finding>& findings, Code code) const {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
  }

  std::string node_;  // its own, so that tests may run at the same time
  platform::Folder folder_;
  platform::Certificates certificates_;
  std::string tls_lines_, habits_ = "none", program_ = STUB_PROGRAM;
  std::uint16_t api_ = 0, link_ = 0, relay_ = 0, leader_port_ = 0;
  platform::Child agent_;
  int agent_status_ = -1;

  asio::io_context io_;
  std::shared_ptr<platform::TlsContext> leader_;
  std::unique_ptr<platform::Listener> listener_;
  platform::ChannelPtr channel_;
  std::uint64_t next_id_ = 1;
  Term term_{1};
  bool acknowledge_heartbeats_ = true, acknowledge_events_ = true;
  std::optional<protocol::Hello> hello_;
  protocol::Heartbeat heartbeat_;
  std::size_t heartbeats_ = 0, progresses_ = 0, seen_ = 0;
  std::deque<protocol::StageEvent> events_;
  std::vector<protocol::Refusal> refusals_;
  std::optional<protocol::VerifyDone> verified_;
  std::optional<protocol::VerifyDone> audited_;
  std::optional<protocol::ProbeDone> probed_;
};

}  // namespace troika::agent
