#include "daemon/cluster/leader.hpp"

#include <algorithm>

#include "agent/model/manifest.hpp"
#include "platform/log.hpp"

namespace troika::daemon {

Leader::Leader(const config::ClusterConfig& config, Store& store, Incidents& incidents, Clock clock,
               Hooks hooks)
    : config_(config),
      store_(store),
      incidents_(incidents),
      clock_(std::move(clock)),
      hooks_(std::move(hooks)),
      cluster_(cluster_plan(config)),
      nodes_(config) {}

Status Leader::start() {
  TROIKA_TRY(term, store_.term());
  TROIKA_TRY(replicas, store_.replicas());
  TROIKA_TRY(verifications, store_.last_verifications());
  nodes_.recall(verifications);
  if (auto manifest = model::read_manifest(config_.model.manifest); !manifest.ok())
    platform::log("no replica can be verified until this is corrected: " + manifest.error().message());
  step(policies::LeaderStarted{term, std::move(replicas)});
  return Done{};
}

void Leader::tick() {
  step(policies::Tick{});
  if (!audit_) return;
  audit_->tick(clock_.now());
  finish_audit();
}

bool Leader::broken(const Status& status) {
  if (status.ok()) return false;
  if (!std::exchange(broken_, true)) hooks_.broken(status.error());
  return true;
}

// Carrying out an action may bring a new event: it waits until the actions in hand are done.
void Leader::step(policies::Event event) {
  events_.push_back(std::move(event));
  if (std::exchange(stepping_, true)) return;
  while (!events_.empty() && !broken_) {
    const policies::Event next = std::move(events_.front());
    events_.pop_front();
    for (const auto& action : cluster_.step(next, clock_.now()))
      if (!carry_out(action)) break;
  }
  stepping_ = false;
}

void Leader::wish(std::uint64_t command, protocol::Verb verb, std::string replica) {
  platform::log("an operator wishes: " + std::string(protocol::name(verb)) + " " +
                (replica.empty() ? "all" : replica));
  step(policies::Wished{command, daemon::wish(verb), std::move(replica)});
}

std::string Leader::progress(const std::string& replica) const {
  std::string text;
  for (const auto& view : cluster_.replicas()) {
    if (!replica.empty() && view.name != replica) continue;
    if (!text.empty()) text += "; ";
    text += progress_text(view, nodes_.verifying(view.name), nodes_.stages_of(view.name));
  }
  return text;
}

void Leader::gateway_loads(const std::vector<protocol::TargetLoad>& loads) {
  if (!set_route_) return;
  const auto entries = set_route_->entries;  // the event may change them
  for (const auto& entry : entries) {
    if (!entry.draining) continue;
    const bool busy = std::any_of(loads.begin(), loads.end(), [&](const protocol::TargetLoad& load) {
      return load.replica == entry.replica && load.epoch == entry.epoch && load.in_flight > 0;
    });
    if (!busy) step(policies::GatewayDrained{entry.replica, entry.epoch});
  }
}

std::string Leader::reason_of(const std::string& replica) const {
  for (const auto& view : cluster_.replicas())
    if (view.name == replica) return view.reason;
  return {};
}

}  // namespace troika::daemon
