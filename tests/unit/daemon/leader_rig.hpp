// A leader with time in the test's hand and agents that only note what they are sent.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/cluster/leader.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::daemon {

inline config::ReplicaConfig lab_replica(const std::string& name, std::vector<std::string> nodes) {
  config::ReplicaConfig replica;
  replica.name = name;
  replica.layers = {2, 3};
  replica.nodes = std::move(nodes);
  return replica;
}

inline config::ClusterConfig lab_config(const std::string& manifest) {
  config::ClusterConfig config;
  config.cluster = "lab";
  config.model.name = "m";
  config.model.manifest = manifest;
  config.model.layers = 5;
  config.engine.kind = config::EngineKind::Native;
  config.nodes = {{"n1"}, {"n2"}, {"n3"}, {"n4"}};
  config.replicas = {lab_replica("a", {"n1", "n2"}), lab_replica("b", {"n3", "n4"})};
  return config;
}

class NotedLine final : public AgentLine {
 public:
  void send(std::string message) override {
    auto envelope = protocol::parse_envelope(message);
    ASSERT_TRUE(envelope.ok());
    sent.push_back(std::move(envelope).value());
  }
  void close() override { closed = true; }

  template <class T>
  std::vector<T> all() const {
    std::vector<T> out;
    for (const auto& e : sent)
      if (e.type == T::kType) out.push_back(*protocol::decode<T>(e));
    return out;
  }
  std::uint64_t last_id(std::string_view type) const {
    std::uint64_t id = 0;
    for (const auto& e : sent)
      if (e.type == type) id = e.id;
    return id;
  }

  std::vector<protocol::Envelope> sent;
  bool closed = false;
};

class LeaderRig {
 public:
  LeaderRig() : config_(lab_config(folder_ / "manifest.json")) {
    const auto written = platform::write_file_durably(
        config_.model.manifest,
        R"({"format":1,"model":"m","revision":"r","files":{"config.json":{"bytes":2,"sha256":")" +
            std::string(64, 'a') + "\"}}}");
    EXPECT_TRUE(written.ok());
    start();
  }

  // A new leader process over the same store.
  void start() {
    leader_.reset();
    incidents_.reset();
    store_.reset();
    auto opened = Store::open(folder_ / "troika.sqlite");
    ASSERT_TRUE(opened.ok());
    store_ = std::make_unique<Store>(std::move(opened).value());
    incidents_ = std::make_unique<Incidents>(*store_);
    leader_ = std::make_unique<Leader>(
        config_, *store_, *incidents_,
        Leader::Clock{[this] { return now_; },
                      [this] { return WallTime{std::chrono::milliseconds{wall_ms_}}; }},
        Leader::Hooks{[this](const Error& e) { broken.push_back(e); },
                      [this](const protocol::Route& r) { routes.push_back(r); },
                      [this](const policies::FinishCommand& c) {
                        finished.push_back(c);
                        if (on_finished) on_finished(c);
                      },
                      [this](const protocol::AuditReply& r) {
                        audits.push_back(r);
                        if (on_audited) on_audited(r);
                      }});
    const auto started = leader_->start();
    ASSERT_TRUE(started.ok());
  }

  struct Agent {
    std::string node;
    std::shared_ptr<NotedLine> line;
    std::uint64_t session = 0;
  };
  static protocol::Hello hello_of(const std::string& node, const std::string& boot_id) {
    protocol::Hello hello;
    hello.cluster = "lab";
    hello.node = node;
    hello.version = "1";
    hello.boot_id = boot_id;
    return hello;
  }
  Agent connect(const std::string& node, std::vector<protocol::StageReport> stages = {}, Term highest = {}) {
    protocol::Hello hello = hello_of(node, "boot-" + node);
    hello.highest_term = highest;
    hello.stages = std::move(stages);
    hello.relay_address = node + ":7444";
    hello.link_address = node + ":30100";
    hello.engines = {"native"};
    auto line = std::make_shared<NotedLine>();
    const auto session = leader_->connected(line, hello);
    return {node, line, session};
  }
  template <class T>
  bool say(const Agent& agent, const T& message) {
    auto envelope = protocol::parse_envelope(protocol::encode(message, next_id_++));
    return leader_->received(agent.node, agent.session, *envelope);
  }
  protocol::StageReport report(const std::string& replica, std::uint32_t rank, std::uint64_t epoch,
                               protocol::StageState state) {
    protocol::StageReport r;
    r.replica = replica;
    r.rank = Rank{rank};
    r.epoch = Epoch{epoch};
    r.state = state;
    r.pid = state == protocol::StageState::Ready ? 100 + rank : 0;
    return r;
  }
  void event(const Agent& agent, protocol::StageReport r) {
    protocol::StageEvent e;
    e.event = agent.node + "-" + std::to_string(next_event_++);
    e.at = "x";
    e.report = std::move(r);
    say(agent, e);
  }
  void pass(Duration time) {
    now_ += time;
    wall_ms_ += std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
    leader_->tick();
  }

  // Brings replica a from nothing to serving; both agents are returned.
  std::pair<Agent, Agent> serve_a() {
    auto n1 = connect("n1");
    auto n2 = connect("n2");
    leader_->wish(1, protocol::Verb::Start, "a");
    finish_start(n1, n2, 1);
    return {n1, n2};
  }
  void finish_start(const Agent& n1, const Agent& n2, std::uint64_t epoch) {
    pass(std::chrono::milliseconds{250});
    for (const auto* agent : {&n1, &n2}) {
      const auto verifies = agent->line->all<protocol::Verify>();
      ASSERT_FALSE(verifies.empty());
      protocol::VerifyDone done;
      done.request = verifies.back().request;
      done.files = 1;
      done.shards = 3;
      say(*agent, done);
    }
    std::uint32_t rank = 0;
    for (const auto* agent : {&n1, &n2}) {
      ASSERT_FALSE(agent->line->all<protocol::StartStage>().empty());
      event(*agent, report("a", rank++, epoch, protocol::StageState::Ready));
    }
    const auto probes = n1.line->all<protocol::Probe>();
    ASSERT_FALSE(probes.empty());
    protocol::ProbeDone done;
    done.request = probes.back().request;
    done.completed = true;
    done.completion_tokens = Tokens{64};
    done.counter_advance = Tokens{64};
    done.kv_capacity = Tokens{4096};
    done.effective = engine_plan(config_, config_.replicas[0]);
    say(n1, done);
  }
  policies::ReplicaView view(const std::string& replica) {
    for (auto& v : leader_->cluster().replicas())
      if (v.name == replica) return v;
    return {};
  }

  Leader& leader() { return *leader_; }
  Store& store() { return *store_; }
  Incidents& incidents() { return *incidents_; }
  const config::ClusterConfig& config() const { return config_; }

  std::vector<Error> broken;
  std::vector<protocol::Route> routes;
  std::vector<policies::FinishCommand> finished;
  std::function<void(const policies::FinishCommand&)> on_finished;
  std::vector<protocol::AuditReply> audits;
  std::function<void(const protocol::AuditReply&)> on_audited;

 private:
  platform::Folder folder_;
  config::ClusterConfig config_;
  Instant now_{std::chrono::hours{5}};
  std::int64_t wall_ms_ = 1'700'000'000'000;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Incidents> incidents_;
  std::unique_ptr<Leader> leader_;
  std::uint64_t next_id_ = 1;
  std::uint64_t next_event_ = 1;
};

}  // namespace troika::daemon
