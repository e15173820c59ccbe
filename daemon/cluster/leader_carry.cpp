// Carrying out what policies/lifecycle decided.
#include <algorithm>
#include <type_traits>

#include "agent/model/manifest.hpp"
#include "daemon/cluster/leader.hpp"
#include "daemon/cluster/manifest_message.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"
#include "protocol/codec.hpp"

namespace troika::daemon {
namespace {

// The canary: tokens are what counts, not their sense; 64 leave room for a model that thinks first (mode 85).
constexpr std::string_view kCanaryPrompt = "Count from one to ten.";
constexpr std::uint32_t kCanaryTokens = 64;
// policies::Patience::prove gives up later, so that the agent's own word comes first.
constexpr std::uint32_t kCanaryTimeoutMs = 9 * 60 * 1000;

// Bytes of the key of a handshake between the stages of an epoch.
constexpr std::size_t kLinkKeyBytes = 32;

std::uint32_t whole_ms(Duration duration) {
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

// False: the rest of the list must not be carried out.
bool Leader::carry_out(const policies::Action& action) {
  return !broken(std::visit([this](const auto& a) { return carry(a); }, action));
}

Status Leader::carry(const policies::PersistTerm& action) {
  TROIKA_CHECK(store_.save_term(action.term));
  platform::log("term " + std::to_string(action.term.count) + " is in force");
  return Done{};
}

Status Leader::carry(const policies::AnnounceTerm& action) {
  protocol::Welcome welcome;
  welcome.term = action.term;
  welcome.version = TROIKA_VERSION;
  for (const auto& [name, known] : nodes_.all())
    if (known.line && (action.node.empty() || action.node == name)) send(*nodes_.find(name), welcome);
  return Done{};
}

Status Leader::carry(const policies::PersistReplica& action) {
  return store_.save_replica(action.replica, cluster_.term(), clock_.wall(), reason_of(action.replica.name));
}

Status Leader::carry(const policies::SendVerify& action) {
  auto* node = nodes_.find(action.node);
  if (node == nullptr) return Done{};
  auto manifest = manifest_for_agents(config_.model.manifest);
  if (const auto* why = std::get_if<Finding>(&manifest)) {
    step(policies::VerifyFinished{action.node, action.request, {*why}});
    return Done{};
  }
  protocol::Verify verify;
  verify.request = action.request;
  verify.term = cluster_.term();
  verify.replica = action.stage.replica;
  verify.rank = action.stage.rank;
  verify.engine = name(config_.engine.kind);
  verify.manifest = std::get<protocol::Manifest>(std::move(manifest));
  verify.manifest_digest = model::manifest_digest(verify.manifest);
  std::erase_if(node->verifying, [&](const auto& running) { return running.second.stage == action.stage; });
  node->verifying[action.request].stage = action.stage;
  send(*node, verify, {Sent::About::Verify, action.stage, Epoch{}, action.request});
  platform::log("verify " + action.node + " for " + text(action.stage));
  return Done{};
}

void Leader::drop_old_keys(const std::string& replica, Epoch epoch) {
  std::erase_if(link_keys_,
                [&](const auto& key) { return key.first.first == replica && key.first.second < epoch; });
}

const std::string& Leader::link_key(const std::string& replica, Epoch epoch) {
  drop_old_keys(replica, epoch);
  auto& key = link_keys_[{replica, epoch}];
  if (key.empty()) key = platform::random_hex(kLinkKeyBytes);
  return key;
}

Status Leader::carry(const policies::SendStart& action) {
  auto* node = nodes_.find(action.node);
  const auto* replica = replica_named(config_, action.stage.replica);
  if (node == nullptr || replica == nullptr) return Done{};
  const auto next_rank = (action.stage.rank.count + 1) % replica->nodes.size();
  const auto* next = nodes_.find(replica->nodes[next_rank]);
  if (next == nullptr || !next->hello) {
    const auto why =
        finding(Code::NODE_LOST, replica->nodes[next_rank], replica->nodes[next_rank],
                "the address of the next stage's link is not known", "Look at the node's troika-agent.");
    step(policies::StartRefused{action.node, action.stage, action.epoch, why});
    return Done{};
  }
  protocol::StartStage start;
  start.term = cluster_.term();
  start.replica = action.stage.replica;
  start.rank = action.stage.rank;
  start.epoch = action.epoch;
  start.engine = engine_plan(config_, *replica);
  start.next_link = next->hello->link_address;
  start.link_key = link_key(action.stage.replica, action.epoch);
  start.request = next_message_;
  send(*node, start, {Sent::About::Start, action.stage, action.epoch, 0});
  platform::log("start " + text(action.stage) + " epoch " + std::to_string(action.epoch.count) + " on " +
                action.node);
  return Done{};
}

Status Leader::carry(const policies::SendStop& action) {
  auto* node = nodes_.find(action.node);
  if (node == nullptr) return Done{};
  protocol::StopStage stop;
  stop.term = cluster_.term();
  stop.replica = action.stage.replica;
  stop.rank = action.stage.rank;
  stop.epoch = action.epoch;
  stop.grace_ms = whole_ms(action.grace);
  stop.reason = action.reason;
  stop.request = next_message_;
  send(*node, stop, {Sent::About::Stop, action.stage, action.epoch, 0});
  platform::log("stop " + text(action.stage) + " up to epoch " + std::to_string(action.epoch.count) + " on " +
                action.node + ": " + action.reason);
  return Done{};
}

Status Leader::carry(const policies::SendProbe& action) {
  auto* node = nodes_.find(action.node);
  if (node == nullptr) return Done{};
  protocol::Probe probe;
  probe.request = action.request;
  probe.term = cluster_.term();
  probe.replica = action.replica;
  probe.epoch = action.epoch;
  probe.prompt = kCanaryPrompt;
  probe.max_tokens = kCanaryTokens;
  probe.timeout_ms = kCanaryTimeoutMs;
  const StageId stage{action.replica, Rank{0}};
  std::erase_if(probes_, [&](const auto& known) { return known.second == stage; });
  probes_[action.request] = stage;
  send(*node, probe, {Sent::About::Probe, stage, action.epoch, action.request});
  platform::log("probe replica " + action.replica + " epoch " + std::to_string(action.epoch.count));
  return Done{};
}

Status Leader::carry(const policies::SetRoute& action) {
  set_route_ = action;
  give_route();
  return Done{};
}

void Leader::give_route() {
  auto route = route_message(cluster_.term(), generation_ + 1, *set_route_, config_,
                             [this](const std::string& node) { return nodes_.relay_address(node); });
  ++generation_;
  route_ = std::move(route);
  hooks_.route(*route_);
}

Status Leader::carry(const policies::OpenIncident& action) {
  platform::log("incident: " + action.subject + ": " + action.title);
  return incidents_.open(action.subject, action.title, action.findings, clock_.wall());
}

Status Leader::carry(const policies::NoteIncident& action) {
  platform::log(action.subject + ": " + action.action);
  auto noted = incidents_.note(action.subject, action.action, action.findings, clock_.wall(), action.title);
  return noted.ok() ? Status{Done{}} : Status{noted.error()};
}

Status Leader::carry(const policies::CloseIncident& action) {
  platform::log(action.subject + ": incident closed: " + action.action);
  return incidents_.close(action.subject, action.action, clock_.wall());
}

Status Leader::carry(const policies::FinishCommand& action) {
  if (action.command != 0) hooks_.finished(action);
  return Done{};
}

}  // namespace troika::daemon
