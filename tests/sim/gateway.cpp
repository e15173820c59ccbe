// The gateway: its route and its last admission are written down; its process, and its machine, may end at
// any time.
#include <algorithm>

#include "world.hpp"

namespace troika::sim {

using namespace std::chrono_literals;
using namespace policies;

Gateway::Gateway(World& world, AdmissionRule rule) : world_(world), rule_(rule), admission_(rule) {}

Instant Gateway::clock() const {
  return world_.events.now() + clock_offset_;
}

void Gateway::start() {
  if (up_) return;
  world_.note("gateway starts");
  up_ = true;
  ++life_;
  open_.clear();
  waiters_.clear();
  admission_ = Admission(rule_);
  admission_.restore(record_, "boot-" + std::to_string(boot_), clock());
  to_leader_ = world_.new_pipe([this] { return cut_until_; });
  tell([term = fence_.term](Leader& leader) { leader.on_gateway(term); });
}

void Gateway::crash() {
  if (!up_) return;
  world_.note("gateway crashes");
  ++world_.count.gateway_crashes;
  up_ = false;
  ++life_;
  to_leader_->close();
  world_.events.after(world_.random.between(50ms, 2s), [this] { start(); });
}

// The clock that counts from boot begins anew.
void Gateway::reboot() {
  if (!up_) return;
  ++world_.count.gateway_reboots;
  crash();
  ++boot_;
  clock_offset_ = world_.random.between(1s, 20s) - world_.events.now().time_since_epoch();
}

void Gateway::greet(Leader& leader) {
  world_.events.after(world_.random.between(50ms, 800ms), [this, id = leader.id()] {
    if (!up_) return;
    to_leader_->send([this, id, term = fence_.term] {
      if (Leader* l = world_.leader(id)) l->on_gateway(term);
    });
  });
}

void Gateway::tell(std::function<void(Leader&)> what) {
  for (const auto& leader : world_.leaders) {
    if (!leader->alive()) continue;
    to_leader_->send([this, id = leader->id(), what] {
      if (Leader* l = world_.leader(id)) what(*l);
    });
  }
}

void Gateway::on_route(RouteFence offered, const std::vector<RouteEntry>& entries, int leader) {
  if (!up_) return;
  const FenceVerdict verdict = check_route(fence_, offered);
  world_.note("route offered", leader, static_cast<std::int64_t>(offered.term.count),
              static_cast<std::int64_t>(verdict));
  if (verdict == FenceVerdict::StaleTerm) ++world_.count.stale_routes_refused;
  if (verdict != FenceVerdict::Accept) return;
  fence_ = offered;
  entries_ = entries;
  tell_drained();
}

void Gateway::tell_drained() {
  for (const RouteEntry& e : entries_) {
    if (!e.draining) continue;
    const bool busy = std::any_of(open_.begin(), open_.end(), [&](const Open& o) {
      return o.replica == e.replica && o.epoch == e.epoch;
    });
    if (!busy) tell([e](Leader& leader) { leader.on_drained(e.replica, e.epoch); });
  }
}

bool Gateway::answers() const {
  return up_ && !entries_.empty() && !entries_[0].draining &&
         world_.replica_ready(entries_[0].replica, entries_[0].epoch);
}

void Gateway::request(Duration length) {
  if (!up_) return;
  RequestSize size{Tokens{1 + world_.random.below(100)}, Tokens{1 + world_.random.below(100)}};
  decide(++numbers_, size, length, false, clock());
}

void Gateway::decide(std::uint64_t number, RequestSize size, Duration length, bool waited, Instant entered) {
  const AdmissionAnswer answer = admission_.ask(size, Tokens{1000}, clock(), waited);
  if (waited && !std::holds_alternative<Waiting>(answer)) waiters_.pop_front();
  if (const auto* admitted = std::get_if<Admitted>(&answer)) {
    pass(number, *admitted, length);
    if (waited) ask_first_waiting();
  } else if (const auto* waiting = std::get_if<Waiting>(&answer)) {
    if (!waited) {
      ++world_.count.requests_waited;
      waiters_.push_back({number, size, length, entered + rule_.queue_wait});
    }
    world_.events.after(std::max<Duration>(waiting->until - clock(), 1ms), [this, life = life_] {
      if (life == life_ && up_) ask_first_waiting();
    });
  } else {
    ++world_.count.requests_refused;
    if (waited) ask_first_waiting();
  }
}

void Gateway::ask_first_waiting() {
  while (!waiters_.empty() && clock() >= waiters_.front().leaves_at) {
    waiters_.pop_front();
    admission_.leave_queue();
    ++world_.count.requests_refused;
  }
  if (waiters_.empty()) return;
  const Waiter w = waiters_.front();
  decide(w.number, w.size, w.length, true, clock());
}

// Written down first; the write may take longer than the admission is good for.
void Gateway::pass(std::uint64_t number, const Admitted& admitted, Duration length) {
  const Duration commit =
      world_.random.chance(0.15) ? world_.random.between(100ms, 500ms) : world_.random.between(0ms, 20ms);
  const AdmissionRecord record = admission_.record();
  world_.events.after(commit, [this, life = life_, number, admitted, length, record] {
    if (life != life_ || !up_) return;
    if (world_.mutation != Mutation::GatewayForgetsRecord &&
        (!record_.has_value() || record_->boot_id != record.boot_id || record.tat > record_->tat))
      record_ = record;  // one writer, and never back
    if (clock() > admitted.pass_by && world_.mutation != Mutation::GatewayPassesLate) {
      ++world_.count.passes_too_late;
      admission_.gave_up(admitted.ticket);
      ask_first_waiting();
      return;
    }
    admission_.passed(admitted.ticket, clock());
    world_.checks.passed(world_.events.now());
    ++world_.count.requests_passed;
    world_.note("request passed", static_cast<std::int64_t>(number));
    Open open{number, admitted.ticket, {}, Epoch{}};
    for (std::size_t i = 0; i < entries_.size() && !entries_[i].draining; ++i) {
      open.replica = entries_[i].replica;
      open.epoch = entries_[i].epoch;
      world_.checks.request_routed(open.replica, open.epoch);
      if (!world_.replica_ready(open.replica, open.epoch)) continue;
      ++world_.count.requests_answered;
      world_.count.requests_taken_over += i > 0;
      break;
    }
    open_.push_back(open);
    world_.events.after(length, [this, life, number] {
      if (life == life_ && up_) finish(number);
    });
  });
}

void Gateway::finish(std::uint64_t number) {
  const auto found =
      std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.number == number; });
  if (found == open_.end()) return;
  admission_.ended(found->ticket);
  open_.erase(found);
  tell_drained();
  ask_first_waiting();
}

}  // namespace troika::sim
