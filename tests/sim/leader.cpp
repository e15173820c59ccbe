// A leader's process around the policy: sessions, the store, and carrying out actions in their order.
#include <algorithm>

#include "world.hpp"

namespace troika::sim {

using namespace std::chrono_literals;
using namespace policies;

namespace {

std::int64_t number(auto quantity) {
  return static_cast<std::int64_t>(quantity.count);
}

bool has(const std::vector<Finding>& findings, Code code) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

Leader::Leader(World& world, int id) : world_(world), id_(id), cluster_(world.plan) {
  to_gateway_ = world.new_pipe([&world] { return world.gateway->listens_from(); });
}

std::uint64_t Leader::random_below(std::uint64_t bound) {
  return world_.random.below(bound);
}

void Leader::begin() {
  world_.note("leader starts", id_, number(world_.store.term));
  world_.store.owner = id_;
  store_generation_ = world_.store.generation;
  LeaderStarted event;
  event.stored_term = world_.store.term;
  for (const auto& [name, replica] : world_.store.replicas)
    event.replicas.push_back(replica);
  last_tick_ = world_.events.now();
  feed(event);
  if (!alive_) return;
  world_.gateway->greet(*this);
  tick();
}

void Leader::die() {
  if (!alive_) return;
  world_.note("leader dies", id_);
  alive_ = false;
  world_.checks.leader_died(id_);
  for (const auto& [name, session] : sessions_)
    session->open_at_leader = false;
  sessions_.clear();
  for (const auto& node : world_.nodes)
    node->leader_gone(id_);
  to_gateway_->finish([] {});
  world_.lead_again_later();
}

void Leader::pause(Duration length) {
  world_.note("leader pauses", id_, length.count());
  paused_until_ = world_.events.now() + length;
}

void Leader::tick() {
  world_.events.after(1s, [this] {
    if (!alive_) return;
    const Instant now = world_.events.now();
    if (now >= paused_until_) {
      // As in the policy: what was not listened to says nothing.
      const bool watched = now - last_tick_ <= 3s;
      last_tick_ = now;
      std::vector<SessionPtr> silent;
      for (const auto& [name, session] : sessions_) {
        if (!watched)
          session->heard_at_leader = now;
        else if (now - session->heard_at_leader > 5s)
          silent.push_back(session);
      }
      for (const SessionPtr& session : silent) {
        Node& node = *world_.nodes[static_cast<std::size_t>(session->node)];
        session->to_agent->finish([&node, session] { node.close_session(session); });
        on_session_end(session);
      }
      if (alive_) feed(Tick{});
    }
    tick();
  });
}

void Leader::on_hello(const SessionPtr& session, AgentConnected hello) {
  const auto earlier = sessions_.find(hello.node);
  if (earlier != sessions_.end()) earlier->second->open_at_leader = false;
  sessions_[hello.node] = session;
  session->open_at_leader = true;
  session->heard_at_leader = world_.events.now();
  world_.note("hello", id_, session->node, static_cast<std::int64_t>(hello.stages.size()));
  feed(hello);
}

void Leader::on_session_end(const SessionPtr& session) {
  if (!session->open_at_leader) return;
  session->open_at_leader = false;
  const std::string& name = world_.nodes[static_cast<std::size_t>(session->node)]->name();
  sessions_.erase(name);
  feed(AgentDisconnected{name});
}

void Leader::on_message(const SessionPtr& session, const Event& event) {
  if (!session->open_at_leader) return;
  session->heard_at_leader = world_.events.now();
  if (std::holds_alternative<AgentHeard>(event)) {
    Node& node = *world_.nodes[static_cast<std::size_t>(session->node)];
    session->to_agent->send([&node, session] { node.deliver(session, 0, [] {}); });
  }
  feed(event);
}

void Leader::on_gateway(Term term) {
  feed(TermHeard{term});
  if (alive_ && route_.has_value()) give_route();
}

void Leader::on_drained(const std::string& replica, Epoch epoch) {
  for (const ReplicaView& r : cluster_.replicas())
    world_.count.drains_done += r.name == replica && r.epoch == epoch && r.phase == Phase::Draining;
  feed(GatewayDrained{replica, epoch});
}

void Leader::command(Wish wish, const std::string& replica) {
  const std::uint64_t id = ++world_.commands;
  world_.note("command", static_cast<std::int64_t>(id), static_cast<std::int64_t>(wish),
              world_.replica_index(replica));
  world_.checks.command_given(id, id_);
  feed(Wished{id, wish, replica});
}

void Leader::feed(const Event& event) {
  const std::vector<Action> actions = cluster_.step(event, world_.events.now());
  for (const Action& action : actions) {
    if (!alive_) return;
    if (actions_left_ > 0 && --actions_left_ == 0) {
      ++world_.count.leader_crashes_between_actions;
      die();
      return;
    }
    std::visit([this](const auto& a) { act(a); }, action);
  }
}

// A leader that was replaced cannot write any more, and ends as soon as it tries.
bool Leader::may_write() {
  if (world_.store.owner == id_) return true;
  ++world_.count.stale_leaders_ended;
  die();
  return false;
}

void Leader::act(const PersistTerm& a) {
  if (!may_write()) return;
  world_.note("persist term", id_, number(a.term));
  if (world_.mutation != Mutation::LeaderForgetsTerm) world_.store.term = a.term;
}

void Leader::act(const AnnounceTerm& a) {
  world_.note("announce term", id_, number(a.term));
  world_.checks.term_announced(a.term, id_, store_generation_);
  if (a.node.empty() && !sessions_.empty()) ++world_.count.terms_raised;
  for (const auto& [name, session] : sessions_) {
    if (!a.node.empty() && a.node != name) continue;
    Node& node = *world_.nodes[static_cast<std::size_t>(session->node)];
    session->to_agent->send([&node, session = session, term = a.term] {
      node.deliver(session, 0, [&] { node.on_welcome(term); });
    });
  }
}

void Leader::act(const PersistReplica& a) {
  if (!may_write()) return;
  const StoredReplica& r = a.replica;
  world_.note("persist replica", world_.replica_index(r.name), number(r.epoch),
              r.desired_running + 2 * r.proven + 4 * r.ended + 8 * r.released + 16 * r.breaker_open);
  if (r.failures > 0 && !r.ended && !r.proven && begun_[r.name] < r.epoch) ++world_.count.automatic_restarts;
  if (world_.mutation != Mutation::LeaderForgetsReplica) world_.store.replicas[r.name] = r;
}

SessionPtr Leader::session_of(const std::string& node) const {
  const auto found = sessions_.find(node);
  return found == sessions_.end() ? nullptr : found->second;
}

void Leader::act(const SendVerify& a) {
  const SessionPtr session = session_of(a.node);
  if (session == nullptr) return;
  Node& node = *world_.nodes[static_cast<std::size_t>(session->node)];
  session->to_agent->send([&node, session, term = cluster_.term(), a] {
    node.deliver(session, 0, [&] { node.on_verify(session, term, a.request); });
  });
}

void Leader::act(const SendStart& a) {
  world_.note("send start", world_.replica_index(a.stage.replica), a.stage.rank.count, number(a.epoch));
  ++world_.count.starts_sent;
  begun_[a.stage.replica] = a.epoch;
  world_.checks.start_sent(a.stage, a.epoch, id_, store_generation_);
  const SessionPtr session = session_of(a.node);
  if (session == nullptr) return;
  Node& node = *world_.nodes[static_cast<std::size_t>(session->node)];
  // The worst moment to be replaced: starts are under way, and arrive late.
  if (world_.faults.on && world_.random.chance(world_.faults.overlap * 0.05)) {
    if (world_.random.chance(0.5))
      node.cut_off(world_.events.now() + world_.random.between(200ms, 4s), true, false);
    world_.events.after(world_.random.between(0ms, 300ms), [this] { world_.overlap(); });
  }
  session->to_agent->send([&node, session, term = cluster_.term(), a] {
    node.deliver(session, 0, [&] { node.on_start(session, term, a.stage, a.epoch); });
  });
}

void Leader::act(const SendStop& a) {
  world_.note("send stop", world_.replica_index(a.stage.replica), a.stage.rank.count, number(a.epoch));
  if (has(a.reason, "nobody wants"))
    ++world_.count.strays_swept;
  else if (route_.has_value())
    for (const RouteEntry& e : *route_)
      if (e.replica == a.stage.replica && e.epoch <= a.epoch)
        world_.checks.fail("a stage was stopped behind an open gate");
  if (!stops_sent_.insert({{text(a.stage), a.epoch.count}, true}).second) ++world_.count.stops_resent;
  const SessionPtr session = session_of(a.node);
  if (session == nullptr) return;
  Node& node = *world_.nodes[static_cast<std::size_t>(session->node)];
  session->to_agent->send([&node, session, term = cluster_.term(), a] {
    node.deliver(session, 0, [&] { node.on_stop(term, a.stage, a.epoch); });
  });
}

void Leader::act(const SendProbe& a) {
  const SessionPtr session = session_of(a.node);
  if (session == nullptr) return;
  Node& node = *world_.nodes[static_cast<std::size_t>(session->node)];
  session->to_agent->send([&node, session, term = cluster_.term(), a] {
    node.deliver(session, 0, [&] { node.on_probe(session, term, a.request, a.replica, a.epoch); });
  });
}

void Leader::act(const SetRoute& a) {
  const auto first = [](const std::vector<RouteEntry>& entries) {
    return entries.empty() || entries[0].draining ? std::string() : entries[0].replica;
  };
  world_.note("set route", id_, static_cast<std::int64_t>(a.entries.size()),
              world_.replica_index(first(a.entries)));
  const std::string before = route_.has_value() ? first(*route_) : std::string();
  if (!before.empty() && !first(a.entries).empty() && before != first(a.entries)) ++world_.count.failovers;
  for (const RouteEntry& e : a.entries) {
    world_.checks.request_routed(e.replica, e.epoch);
    if (begun_[e.replica] != e.epoch) ++world_.count.adopted_serving;
  }
  route_ = a.entries;
  give_route();
}

void Leader::give_route() {
  const RouteFence fence{cluster_.term(), ++generation_};
  to_gateway_->send(
      [this, fence, entries = *route_, id = id_] { world_.gateway->on_route(fence, entries, id); });
}

void Leader::act(const OpenIncident& a) {
  world_.note("incident opened", id_);
  Counters& count = world_.count;
  count.replicas_failed += has(a.findings, Code::REPLICA_FAILED);
  count.breakers_opened += has(a.findings, Code::BREAKER_OPEN);
  if (has(a.findings, Code::REPLICA_FAILED)) {
    count.failed_by_node_lost += has(a.findings, Code::NODE_LOST);
    count.failed_by_reboot += has(a.findings, Code::NODE_REBOOTED);
    count.failed_by_no_progress += has(a.findings, Code::START_FAILED);
    count.failed_by_probe += has(a.findings, Code::NOT_READY);
  }
  count.verifications_failed += has(a.title, "was not started");
  count.blocked_told += has(a.title, "is not released") || has(a.title, "cannot start");
}

void Leader::act(const NoteIncident&) {}
void Leader::act(const CloseIncident&) {
  world_.note("incident closed", id_);
}

void Leader::act(const FinishCommand& a) {
  world_.note("command finished", static_cast<std::int64_t>(a.command), static_cast<std::int64_t>(a.verdict));
  Counters& count = world_.count;
  ++count.commands_finished;
  count.commands_superseded += has(a.text, "superseded");
  count.drains_cut += has(a.findings, Code::TRUNCATED);
  count.commands_unknown += has(a.text, "there is no replica");
  count.commands_blocked += has(a.findings, Code::NODE_LOST) || has(a.findings, Code::NOT_RELEASED);
  if (world_.mutation == Mutation::LeaderLosesCommands) return;
  world_.checks.command_finished(a.command);
}

}  // namespace troika::sim
