// What agents say.
#include <algorithm>

#include "daemon/cluster/leader.hpp"
#include "platform/log.hpp"

namespace troika::daemon {
namespace {

constexpr Duration kJustNow = std::chrono::seconds{5};  // some heartbeats; no machine boots in that time

}  // namespace

std::optional<std::string> Leader::name_taken(const protocol::Hello& hello, const std::string& from) const {
  const auto found = nodes_.all().find(hello.node);
  if (found == nodes_.all().end()) return std::nullopt;
  const Node& node = found->second;
  // The same boot: its own earlier connection. Silent: it may have been rebooted.
  if (!node.line || !node.hello || node.hello->boot_id == hello.boot_id) return std::nullopt;
  if (!node.heard || clock_.now() - *node.heard > kJustNow) return std::nullopt;
  return "an agent with the name " + hello.node + " is connected from another machine (its relay is " +
         node.hello->relay_address + "); this one, from " + from +
         ", is not taken. Each node has a name of its own: see name in agent.toml and its certificate";
}

std::uint64_t Leader::connected(std::shared_ptr<AgentLine> line, protocol::Hello hello) {
  auto* node = nodes_.find(hello.node);
  TROIKA_INVARIANT(node != nullptr);
  if (node->line) {
    platform::log(hello.node + " connected anew; its earlier connection is void");
    node->line->close();
  }
  const std::string name = hello.node;
  audit_lost(name);  // it has forgotten
  const auto session = sessions_[name] = next_session_++;
  const auto event = agent_connected(hello);
  const std::string address_before = nodes_.relay_address(name);
  platform::log(name + " connected: version " + hello.version + ", highest term " +
                std::to_string(hello.highest_term.count) + ", " + std::to_string(hello.stages.size()) +
                " stages");
  nodes_.connected(*node, std::move(line), std::move(hello), clock_.now());
  step(event);
  // A node that came back elsewhere: the gateway must know before its next request.
  const bool routed = route_ && std::any_of(route_->targets.begin(), route_->targets.end(),
                                            [&](const protocol::RouteTarget& t) { return t.node == name; });
  if (routed && !broken_ && nodes_.relay_address(name) != address_before && !address_before.empty())
    give_route();
  return session;
}

void Leader::disconnected(const std::string& name, std::uint64_t session) {
  if (sessions_[name] != session) return;
  auto* node = nodes_.find(name);
  if (node == nullptr || !node->line) return;
  platform::log(name + " is not connected any more");
  nodes_.disconnected(*node);
  audit_lost(name);
  step(policies::AgentDisconnected{name});
}

bool Leader::received(const std::string& name, std::uint64_t session, const protocol::Envelope& envelope) {
  if (broken_ || sessions_[name] != session) return false;
  auto* node = nodes_.find(name);
  if (node == nullptr || !node->line) return false;
  node->heard = clock_.now();
  return take(name, *node, envelope);
}

bool Leader::take(const std::string& name, Node& node, const protocol::Envelope& envelope) {
  const auto refuse = [&](std::string code, std::string message) {
    const protocol::Refusal refusal{envelope.id, std::move(code), std::move(message)};
    node.line->send(protocol::encode(refusal, next_message_++));
  };
  bool known = false;
  const auto offer = [&]<class T>(T*) {
    if (known || envelope.type != T::kType) return;
    known = true;
    const auto message = protocol::decode<T>(envelope);
    if (!message.ok()) return refuse("MALFORMED", message.error().message());
    (void)broken(take(name, node, *message));
  };
  offer(static_cast<protocol::Heartbeat*>(nullptr));
  offer(static_cast<protocol::StageEvent*>(nullptr));
  offer(static_cast<protocol::VerifyProgress*>(nullptr));
  offer(static_cast<protocol::VerifyDone*>(nullptr));
  offer(static_cast<protocol::AuditProgress*>(nullptr));
  offer(static_cast<protocol::AuditDone*>(nullptr));
  offer(static_cast<protocol::ProbeDone*>(nullptr));
  offer(static_cast<protocol::Refusal*>(nullptr));
  if (!known) refuse("UNKNOWN_TYPE", "the leader does not know \"" + envelope.type + "\"");
  return !broken_ && node.line != nullptr;
}

Status Leader::take(const std::string& name, Node& node, const protocol::Heartbeat& heartbeat) {
  node.facts = heartbeat.facts;
  node.line->send(protocol::encode(protocol::HeartbeatAck{}, next_message_++));
  step(policies::AgentHeard{name});
  for (const auto& report : heartbeat.stages) {
    nodes_.heard(node, report);
    step(policies::StageReported{name, reported_stage(report)});
  }
  return Done{};
}

// First the store, then the acknowledgement: the agent forgets the event with it.
Status Leader::take(const std::string& name, Node& node, const protocol::StageEvent& event) {
  TROIKA_TRY(fresh, store_.save_stage_event(name, event, clock_.wall()));
  if (fresh) {
    const auto& report = event.report;
    const StageId stage{report.replica, report.rank};
    platform::log(text(stage) + " epoch " + std::to_string(report.epoch.count) + " on " + name + ": " +
                  std::string(protocol::name(report.state)) +
                  (report.detail.empty() ? "" : " (" + report.detail + ")"));
    nodes_.heard(node, report);
    step(policies::StageReported{name, reported_stage(report)});
  }
  if (!broken_ && node.line)
    node.line->send(protocol::encode(protocol::StageEventAck{event.event}, next_message_++));
  return Done{};
}

Status Leader::take(const std::string& name, Node& node, const protocol::VerifyProgress& progress) {
  const auto running = node.verifying.find(progress.request);
  if (running != node.verifying.end()) running->second.progress = progress;
  step(policies::VerifyProgressed{name, progress.request, progress.done});
  return Done{};
}

Status Leader::take(const std::string& name, Node& node, const protocol::VerifyDone& done) {
  const auto running = node.verifying.find(done.request);
  if (running != node.verifying.end()) {
    const std::string replica = running->second.stage.replica;
    node.verifying.erase(running);
    TROIKA_CHECK(store_.save_verification({name, replica, clock_.wall(), done}));
    node.proofs[replica] = done;
    platform::log(name + " verified for " + replica + ": " +
                  std::string(troika::name(verdict_of(done.findings))) + ", " + std::to_string(done.files) +
                  " files, " + std::to_string(done.shards) + " shards");
  }
  step(policies::VerifyFinished{name, done.request, done.findings, copies_of(name, done)});
  return Done{};
}

Status Leader::take(const std::string& name, Node&, const protocol::ProbeDone& done) {
  const auto known = probes_.find(done.request);
  if (known == probes_.end()) return Done{};
  const StageId stage = known->second;
  probes_.erase(known);
  const auto* replica = replica_named(config_, stage.replica);
  if (replica == nullptr) return Done{};
  const auto findings =
      policies::judge_probe(stage, name, settings(engine_plan(config_, *replica)), probe_facts(done));
  platform::log("probe of " + text(stage) + ": " + std::to_string(done.completion_tokens.count) +
                " tokens in " + std::to_string(done.seconds) + " s" +
                (findings.empty() ? ", proven" : ", " + findings.front().message));
  step(policies::ProbeFinished{done.request, findings, done.kv_capacity});
  return Done{};
}

Status Leader::take(const std::string& name, Node& node, const protocol::Refusal& refusal) {
  platform::log(name + " refused: " + refusal.code + ": " + refusal.message);
  // The next Hello tells the term that is obeyed there.
  if (refusal.code == "STALE_TERM") node.line->close();
  const auto sent = sent_.find(refusal.re);
  if (sent == sent_.end()) return Done{};
  const Sent about = sent->second;
  sent_.erase(sent);
  refused(name, about, refusal);
  return Done{};
}

void Leader::refused(const std::string& name, const Sent& sent, const protocol::Refusal& refusal) {
  const std::string stage = text(sent.stage);
  switch (sent.about) {
    case Sent::About::Verify: {
      if (auto* node = nodes_.find(name)) node->verifying.erase(sent.request);
      step(policies::VerifyFinished{
          name, sent.request, {refusal_finding(Code::CANNOT_TELL, name, stage, refusal)}});
      return;
    }
    case Sent::About::Start: {
      const auto code = refusal.code == "STALE_EPOCH"  ? Code::STALE_EPOCH
                        : refusal.code == "STALE_TERM" ? Code::STALE_TERM
                        : refusal.code == "BUSY"       ? Code::NOT_RELEASED
                                                       : Code::START_FAILED;
      step(policies::StartRefused{name, sent.stage, sent.epoch, refusal_finding(code, name, stage, refusal)});
      return;
    }
    case Sent::About::Probe:
      probes_.erase(sent.request);
      step(policies::ProbeFinished{
          sent.request, {refusal_finding(Code::NOT_READY, name, stage, refusal)}, Tokens{}});
      return;
    case Sent::About::Audit:
      if (audit_ && audit_->request() == sent.request) {
        audit_->cannot_tell(name, refusal.message);
        finish_audit();
      }
      return;
    case Sent::About::Stop:
      return;  // sent again as long as the stage is not gone
  }
}

}  // namespace troika::daemon
