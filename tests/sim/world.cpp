// One run: what goes wrong in it, and what must be true at its end.
#include "world.hpp"

#include <algorithm>
#include <cstdio>

#include "policies/line.hpp"

namespace troika::sim {

using namespace std::chrono_literals;
using namespace policies;

namespace {

AdmissionRule draw_rule(Random& random) {
  AdmissionRule rule;
  constexpr double kRates[] = {0.5, 2.0, 3.0};
  rule.rate = kRates[random.below(3)];
  rule.burst = static_cast<std::uint32_t>(1 + random.below(3));
  rule.in_flight = random.chance(0.3) ? 2 : 8;
  rule.queue = random.chance(0.5) ? 3 : 0;
  rule.queue_wait = 4s;
  return rule;
}

// Limits as in production, only shorter; their order is kept.
ClusterPlan draw_plan(Random& random) {
  ClusterPlan plan;
  Patience& p = plan.patience;
  p.reconcile = 4s;
  p.node_lost = 4s;
  p.no_progress = 8s;
  p.prove = 4s;
  p.stop_grace = 1s;
  p.drain = 4s;
  p.resend = 1s;
  p.blocked = 8s;
  plan.restart.attempts = random.chance(0.3) ? 2 : 1;
  plan.restart.window = random.chance(0.3) ? Duration{10s} : Duration{60s};
  plan.restart.backoff = 1s;
  plan.failover = random.chance(0.2) ? FailoverMode::ActiveActive : FailoverMode::ActiveStandby;
  const std::size_t replicas = random.chance(0.15) ? 1 : 2;
  int node = 0;
  for (std::size_t i = 0; i < replicas; ++i) {
    ReplicaPlan r;
    r.name = std::string(1, static_cast<char>('a' + i));
    const std::uint64_t ranks = 1 + random.below(3);
    for (std::uint64_t k = 0; k < ranks; ++k) {
      r.nodes.push_back("n" + std::to_string(++node));
      r.layers.push_back(14);
    }
    plan.replicas.push_back(std::move(r));
  }
  return plan;
}

Faults draw_faults(Random& random) {
  Faults f;
  const auto draw = [&](double most) { return random.chance(0.5) ? 0.0 : most; };
  f.stage_dies = draw(0.25);
  f.stage_hangs = draw(0.06);
  f.slow_to_die = draw(0.4);
  f.release_delayed = draw(0.3);
  f.bad_probe = draw(0.2);
  f.corrupt = draw(0.4);
  f.leader_crash = draw(1);
  f.leader_crash_between = draw(1);
  f.leader_pause = draw(0.7);
  f.overlap = draw(1);
  f.store_lost = random.chance(0.1) ? 0.5 : 0;
  f.agent_crash = draw(1.5);
  f.reboot = draw(0.6);
  f.cut = draw(1.5);
  f.gateway_crash = draw(1);
  f.gateway_reboot = draw(0.3);
  f.gateway_cut = draw(0.4);
  f.command = 1.5;
  f.mean_gap = random.chance(0.3) ? Duration{1500ms} : Duration{5s};
  return f;
}

}  // namespace

World::World(std::uint64_t run_seed, Mutation mutated)
    : seed(run_seed),
      mutation(mutated),
      random(run_seed),
      plan(draw_plan(random)),
      faults(draw_faults(random)),
      checks(AdmissionRule{}) {
  const AdmissionRule rule = draw_rule(random);
  checks = Checks(rule);
  for (const ReplicaPlan& r : plan.replicas)
    for (std::size_t k = 0; k < r.nodes.size(); ++k)
      nodes.push_back(std::make_unique<Node>(*this, static_cast<int>(nodes.size())));
  gateway = std::make_unique<Gateway>(*this, rule);
}

World::~World() {
  for (const std::weak_ptr<Pipe>& pipe : pipes_)
    if (const std::shared_ptr<Pipe> left = pipe.lock()) left->close();
}

std::shared_ptr<Pipe> World::new_pipe(std::function<Instant()> ready) {
  auto pipe = std::make_shared<Pipe>(events, random, faults.on, std::move(ready));
  pipes_.push_back(pipe);
  return pipe;
}

Leader* World::leader(int id) {
  Leader* l = leaders[static_cast<std::size_t>(id)].get();
  return l->alive() ? l : nullptr;
}

Leader* World::newest_leader() {
  return leaders.empty() ? nullptr : leader(static_cast<int>(leaders.size()) - 1);
}

void World::start_leader() {
  leaders.push_back(std::make_unique<Leader>(*this, static_cast<int>(leaders.size())));
  leaders.back()->begin();
}

void World::lead_again_later() {
  events.after(random.between(100ms, 4s), [this] {
    if (newest_leader() == nullptr) start_leader();
  });
}

bool World::replica_ready(const std::string& replica, Epoch epoch) const {
  for (const ReplicaPlan& r : plan.replicas) {
    if (r.name != replica) continue;
    return std::all_of(r.nodes.begin(), r.nodes.end(), [&](const std::string& n) {
      return nodes[static_cast<std::size_t>(node_index(n))]->serves(replica, epoch);
    });
  }
  return false;
}

bool World::replica_healthy(const std::string& replica) const {
  for (const ReplicaPlan& r : plan.replicas)
    if (r.name == replica)
      return std::all_of(r.nodes.begin(), r.nodes.end(), [&](const std::string& n) {
        return nodes[static_cast<std::size_t>(node_index(n))]->healthy();
      });
  return false;
}

bool World::run() {
  for (const auto& node : nodes)
    events.after(random.between(0ms, 2s), [n = node.get()] { n->boot(); });
  events.after(random.between(0ms, 2s), [this] { gateway->start(); });
  events.after(random.between(0ms, 2s), [this] { start_leader(); });
  events.after(3s, [this] { wish(Wish::Start, {}); });
  client();
  run_for(8s);
  fault();
  run_for(90s);
  cease_faults();
  expect_service();
  expect_start();
  expect_stop();
  return !checks.failure().has_value();
}

void World::run_for(Duration length, const std::function<bool()>& until) {
  const Instant end = events.now() + length;
  while (!checks.failure().has_value() && events.run_one(end))
    if (until && until()) return;
}

void World::client() {
  events.after(random.between(50ms, 1200ms), [this] {
    gateway->request(random.between(100ms, 4s));
    client();
  });
}

void World::wish(Wish what, const std::string& replica) {
  if (Leader* l = newest_leader()) l->command(what, replica);
}

void World::command_at_random() {
  constexpr Wish kWishes[] = {Wish::Start,   Wish::Start, Wish::Stop,
                              Wish::Restart, Wish::Drain, Wish::Failover};
  const Wish what = kWishes[random.below(6)];
  std::string replica;
  if (random.chance(0.05))
    replica = "x";
  else if (random.chance(0.75))
    replica = plan.replicas[random.below(plan.replicas.size())].name;
  if (what == Wish::Failover) ++count.operator_failovers;
  wish(what, replica);
  // An operator who stopped something mostly wants it back soon.
  if ((what == Wish::Stop || what == Wish::Drain) && random.chance(0.7))
    events.after(random.between(500ms, 8s), [this, replica] {
      if (faults.on) wish(Wish::Start, replica);
    });
}

// Another leader takes over while the one before still runs, or is only suspended.
void World::overlap() {
  Leader* old = newest_leader();
  if (old == nullptr || !faults.on) return;
  ++count.leaders_overlapped;
  if (random.chance(0.5)) old->pause(random.between(500ms, 9s));
  start_leader();
  events.after(random.between(1s, 10s), [old] { old->die(); });
}

// One fault, then the next after a while.
void World::fault() {
  events.after(random.between(10ms, 2 * faults.mean_gap), [this] {
    if (!faults.on) return;
    const Faults& f = faults;
    struct Kind {
      double weight;
      std::function<void()> happen;
    };
    Node& node = *nodes[random.below(nodes.size())];
    const Kind kinds[] = {
        {f.command, [&] { command_at_random(); }},
        {f.stage_dies * 4, [&] { node.kill_stage(0); }},
        {f.corrupt, [&] { node.set_corrupt(random.chance(0.5)); }},
        {f.leader_crash,
         [&] {
           if (Leader* l = newest_leader()) ++count.leader_crashes, l->die();
         }},
        {f.leader_crash_between,
         [&] {
           if (Leader* l = newest_leader()) l->die_between_actions();
         }},
        {f.leader_pause,
         [&] {
           if (Leader* l = newest_leader()) ++count.leader_pauses, l->pause(random.between(500ms, 9s));
         }},
        {f.overlap, [&] { overlap(); }},
        {f.store_lost,
         [&] {
           Leader* l = newest_leader();
           if (l == nullptr) return;
           ++count.stores_lost;
           note("store lost");
           l->die();
           store = Store{Term{}, {}, store.owner, store.generation + 1};
           events.after(5s, [this] { wish(Wish::Start, {}); });
         }},
        {f.agent_crash,
         [&] {
           if (!node.agent_up()) return;
           ++count.agent_crashes;
           node.kill_agent();
           events.after(random.between(50ms, 6s), [&node] { node.start_agent(); });
         }},
        {f.reboot,
         [&] {
           if (node.gone()) return;
           ++count.node_reboots;
           const bool for_good = random.chance(0.2);
           node.power_off(for_good);
           events.after(random.between(500ms, 12s), [&node] { node.boot(); });
         }},
        {f.cut,
         [&] {
           ++count.nodes_cut_off;
           const bool to_agent = random.chance(0.8);
           const bool to_leader = !to_agent || random.chance(0.7);
           count.one_way_cuts += to_agent != to_leader;
           node.cut_off(events.now() + random.between(200ms, 15s), to_agent, to_leader);
         }},
        {f.gateway_crash, [&] { gateway->crash(); }},
        {f.gateway_reboot, [&] { gateway->reboot(); }},
        {f.gateway_cut, [&] { gateway->cut_off(events.now() + random.between(200ms, 8s)); }},
    };
    double sum = 0;
    for (const Kind& k : kinds)
      sum += k.weight;
    double at = static_cast<double>(random.below(1u << 20)) / (1u << 20) * sum;
    for (const Kind& k : kinds) {
      at -= k.weight;
      if (at >= 0) continue;
      k.happen();
      break;
    }
    fault();
  });
}

// From here on nothing new goes wrong; nodes that are gone for good stay gone, breakers stay as they are.
void World::cease_faults() {
  note("faults cease");
  faults.on = false;
  for (const auto& l : leaders)
    if (l.get() != newest_leader()) l->die();
  if (Leader* l = newest_leader()) {
    l->pause(Duration{});
    l->spare();
  }
  for (const auto& node : nodes) {
    node->heal();
    node->boot();
    node->start_agent();
    node->set_corrupt(false);
  }
  gateway->cut_off(events.now());
}

// Each replica that is wanted and not barred serves, and the gateway passes requests to one of them.
bool World::settled() const {
  const Leader* l = leaders.empty() || !leaders.back()->alive() ? nullptr : leaders.back().get();
  if (l == nullptr) return false;
  bool any = false;
  for (const ReplicaView& r : l->replicas()) {
    if (!r.desired_running || r.breaker_open || r.phase == Phase::Failed || !replica_healthy(r.name))
      continue;
    any = true;
    if (r.phase != Phase::Serving || !replica_ready(r.name, r.epoch)) return false;
  }
  return !any || gateway->answers();
}

// (d) The bound holds what the shortened limits allow at most: a cut connection noticed (5 s), a hung start
// noticed (8 s), slow deaths (8 s) and delayed releases, backoff, verification, load and proof, twice.
void World::expect_service() {
  run_for(5s);
  const auto stands = [this, steps = 0]() mutable { return ++steps % 8 == 0 && settled(); };
  run_for(80s, stands);
  if (checks.failure().has_value()) return;
  if (!settled()) return checks.fail("no service within 80 s after the last fault");
  std::size_t serving = 0;
  for (const ReplicaView& r : newest_leader()->replicas())
    serving += r.phase == Phase::Serving;
  ++(serving == 0 ? count.barred_at_the_end : count.served_at_the_end);
  count.served_on_one_replica += serving == 1 && plan.replicas.size() == 2;
}

// An operator's start closes every breaker: then all replicas with healthy nodes serve, and the command has
// ended.
void World::expect_start() {
  if (checks.failure().has_value()) return;
  note("expect start");
  wish(Wish::Start, {});
  run_for(80s, [this, steps = 0]() mutable {
    return ++steps % 8 == 0 && checks.open_commands().empty() && settled();
  });
  if (checks.failure().has_value()) return;
  for (const ReplicaView& r : newest_leader()->replicas())
    if (replica_healthy(r.name) && r.phase != Phase::Serving)
      checks.fail(line("replica ", r.name, " was not started within 80 s: ", name(r.phase), ": ", r.reason));
  if (!checks.open_commands().empty())
    checks.fail(line("command ", checks.open_commands().front(), " did not finish"));
}

// After a stop nothing of ours is left on any node that can be reached.
void World::expect_stop() {
  if (checks.failure().has_value()) return;
  note("expect stop");
  wish(Wish::Stop, {});
  const auto nothing_left = [this] {
    return std::all_of(nodes.begin(), nodes.end(), [](const auto& n) { return n->stages().empty(); });
  };
  run_for(40s, [&, steps = 0]() mutable {
    return ++steps % 8 == 0 && checks.open_commands().empty() && nothing_left();
  });
  if (checks.failure().has_value()) return;
  if (!nothing_left()) return checks.fail("something is left after the stop");
  if (!checks.open_commands().empty())
    checks.fail(line("command ", checks.open_commands().front(), " did not finish"));
}

void World::print_failure() const {
  std::printf("seed %llu: %s\nlast events:\n", static_cast<unsigned long long>(seed),
              checks.failure()->c_str());
  trace.print();
  if (leaders.empty()) return;
  for (const ReplicaView& r : leaders.back()->replicas())
    std::printf("  leader %d: %s %s (epoch %llu): %s\n", leaders.back()->id(), r.name.c_str(),
                std::string(name(r.phase)).c_str(), static_cast<unsigned long long>(r.epoch.count),
                r.reason.c_str());
}

}  // namespace troika::sim
