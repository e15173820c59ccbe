// A node: its agent behind the fence, and stages that outlive the agent.
#include <algorithm>

#include "world.hpp"

namespace troika::sim {

using namespace std::chrono_literals;
using policies::FenceVerdict;
using policies::ReportedStage;
using policies::StageFact;

Node::Node(World& world, int index) : world_(world), index_(index), name_("n" + std::to_string(index + 1)) {}

void Node::boot() {
  if (powered_ || dead_for_good_) return;
  powered_ = true;
  ++boot_;
  start_agent();
}

// The node's memory is gone at once: stages, keepers, agent; connections end without a word.
void Node::power_off(bool for_good) {
  dead_for_good_ = dead_for_good_ || for_good;
  if (!powered_) return;
  world_.note("node power off", index_, for_good);
  powered_ = false;
  agent_up_ = false;
  ++life_;
  for (const StageProcess& s : stages_)
    world_.checks.process_released(s.id, s.epoch, index_);
  stages_.clear();
  for (const SessionPtr& session : sessions_) {
    session->open_at_agent = false;
    session->to_leader->close();
    session->to_agent->close();
  }
  sessions_.clear();
}

void Node::kill_agent() {
  if (!agent_up_) return;
  world_.note("agent killed", index_);
  agent_up_ = false;
  ++life_;
  const std::vector<SessionPtr> sessions = sessions_;
  for (const SessionPtr& session : sessions)
    close_session(session);
}

void Node::start_agent() {
  if (agent_up_ || !powered_) return;
  world_.note("agent starts", index_, boot_, static_cast<std::int64_t>(stages_.size()));
  agent_up_ = true;
  ++life_;
  for (StageProcess& s : stages_)
    s.releasing = false;
  if (world_.mutation == Mutation::AgentForgetsStages) stages_.clear();  // they live on, unknown
  dial();
  beat();
}

void Node::cut_off(Instant until, bool to_agent, bool to_leader) {
  world_.note("cut off", index_, to_agent, to_leader);
  if (to_agent) to_agent_from_ = std::max(to_agent_from_, until);
  if (to_leader) to_leader_from_ = std::max(to_leader_from_, until);
}

void Node::heal() {
  to_agent_from_ = to_leader_from_ = world_.events.now();
}

bool Node::serves(const std::string& replica, Epoch epoch) const {
  return std::any_of(stages_.begin(), stages_.end(), [&](const StageProcess& s) {
    return s.id.replica == replica && s.epoch == epoch && s.fact == StageFact::Ready;
  });
}

void Node::dial() {
  const int life = life_;
  world_.events.after(world_.random.between(100ms, 900ms), [this, life] {
    if (life != life_ || !agent_up_) return;
    for (const auto& leader : world_.leaders) {
      if (!leader->alive()) continue;
      const bool connected = std::any_of(sessions_.begin(), sessions_.end(),
                                         [&](const SessionPtr& s) { return s->leader == leader->id(); });
      const Instant now = world_.events.now();
      if (!connected && to_agent_from_ <= now && to_leader_from_ <= now) open_session(leader->id());
    }
    dial();
  });
}

void Node::open_session(int leader) {
  auto session = std::make_shared<Session>();
  session->node = index_;
  session->leader = leader;
  session->heard_at_agent = session->heard_at_leader = world_.events.now();
  session->to_agent = world_.new_pipe([this] { return to_agent_from_; });
  session->to_leader = world_.new_pipe([this, leader] {
    const Leader* l = world_.leader(leader);
    return std::max(to_leader_from_, l == nullptr ? Instant{} : l->listens_from());
  });
  sessions_.push_back(session);

  policies::AgentConnected hello;
  hello.node = name_;
  hello.highest_term = fence_.highest_term;
  hello.highest_epochs = fence_.highest_epochs;
  hello.boot_id = "boot-" + std::to_string(boot_);
  for (const StageProcess& s : stages_)
    hello.stages.push_back(reported(s));
  session->to_leader->send([this, session, hello] {
    if (Leader* l = world_.leader(session->leader)) l->on_hello(session, hello);
  });
  // What was seen while nobody listened is handed over once, late as it is.
  for (const ReportedStage& late : spool_) {
    session->to_leader->send([this, session, late] {
      if (Leader* l = world_.leader(session->leader))
        l->on_message(session, policies::StageReported{name_, late});
    });
  }
  spool_.clear();
  // An event whose acknowledgement was lost is handed over a second time, however old it is by now.
  for (const ReportedStage& repeat : recent_) {
    if (!world_.random.chance(0.2)) continue;
    ++world_.count.reports_repeated;
    session->to_leader->send([this, session, repeat] {
      if (Leader* l = world_.leader(session->leader))
        l->on_message(session, policies::StageReported{name_, repeat});
    });
  }
}

void Node::close_session(const SessionPtr& session) {
  if (!session->open_at_agent) return;
  session->open_at_agent = false;
  if (world_.mutation != Mutation::AgentKeepsOldSession) session->to_agent->close();
  session->to_leader->finish([this, session] {
    if (Leader* l = world_.leader(session->leader)) l->on_session_end(session);
  });
  std::erase(sessions_, session);
}

void Node::leader_gone(int leader) {
  const std::vector<SessionPtr> sessions = sessions_;
  for (const SessionPtr& session : sessions) {
    if (session->leader != leader) continue;
    session->to_agent->finish([this, session] { close_session(session); });
  }
}

void Node::beat() {
  const int life = life_;
  world_.events.after(1s, [this, life] {
    if (life != life_ || !agent_up_) return;
    const std::vector<SessionPtr> sessions = sessions_;
    for (const SessionPtr& session : sessions) {
      if (world_.events.now() - session->heard_at_agent > 4s) {
        close_session(session);
        continue;
      }
      std::vector<ReportedStage> reports;
      if (world_.random.chance(0.3))
        for (const StageProcess& s : stages_)
          reports.push_back(reported(s));
      session->to_leader->send([this, session, reports] {
        Leader* l = world_.leader(session->leader);
        if (l == nullptr) return;
        l->on_message(session, policies::AgentHeard{name_});
        for (const ReportedStage& r : reports)
          l->on_message(session, policies::StageReported{name_, r});
      });
    }
    beat();
  });
}

void Node::deliver(const SessionPtr& session, int life, const std::function<void()>& obey_message) {
  const bool listens = session->open_at_agent || world_.mutation == Mutation::AgentKeepsOldSession;
  if (!listens || !agent_up_ || (life != 0 && life != life_)) return;
  session->heard_at_agent = world_.events.now();
  obey_message();
}

std::vector<policies::HeldStage> Node::held() const {
  std::vector<policies::HeldStage> held;
  for (const StageProcess& s : stages_)
    held.push_back({s.id, s.epoch});
  return held;
}

// Writing down and obeying are one step here: a crash falls before or after it.
bool Node::obey(const policies::FenceAnswer& answer) {
  switch (answer.verdict) {
    case FenceVerdict::StaleTerm:
      ++world_.count.stale_terms_refused;
      break;
    case FenceVerdict::StaleEpoch:
      ++world_.count.stale_epochs_refused;
      break;
    case FenceVerdict::Busy:  // the policy waits for every release, so this fence is never needed here
    case FenceVerdict::Repeat:
    case FenceVerdict::Accept:
      break;
  }
  if (answer.obey()) fence_ = answer.next;
  return answer.obey() || world_.mutation == Mutation::AgentSkipsFence;
}

void Node::on_welcome(Term term) {
  obey(policies::check_term(fence_, term));
}

void Node::on_start(const SessionPtr& session, Term term, const StageId& stage, Epoch epoch) {
  policies::FenceAnswer answer = policies::check_start(fence_, term, stage, epoch, held());
  const bool skips =
      world_.mutation == Mutation::AgentKeepsOldSession && answer.verdict == FenceVerdict::StaleEpoch;
  if (skips) answer.verdict = FenceVerdict::Accept;
  world_.note("agent got start", index_, static_cast<std::int64_t>(epoch.count),
              static_cast<std::int64_t>(answer.verdict));
  if (!obey(answer)) {
    ++world_.count.starts_refused;
    const policies::StartRefused refused{
        name_, stage, epoch,
        finding(answer.verdict == FenceVerdict::StaleTerm ? Code::STALE_TERM : Code::STALE_EPOCH, name_,
                text(stage), answer.message)};
    session->to_leader->send([this, session, refused] {
      if (Leader* l = world_.leader(session->leader)) l->on_message(session, refused);
    });
    return;
  }
  if (answer.verdict == FenceVerdict::Repeat) return;
  StageProcess process;
  process.uid = ++world_.uids;
  process.id = stage;
  process.epoch = epoch;
  const Faults& f = world_.faults;
  if (f.on && world_.random.chance(f.release_delayed))
    process.failed_releases_left = static_cast<int>(1 + world_.random.below(3));
  stages_.push_back(process);
  world_.checks.process_began(stage, epoch, index_);
  report(stages_.back());
  load(process.uid, static_cast<int>(2 + world_.random.below(4)));
  if (f.on && world_.random.chance(f.stage_dies)) {
    ++world_.count.stages_killed;
    world_.events.after(world_.random.between(10ms, 20s), [this, uid = process.uid] {
      if (world_.faults.on) exit_stage(uid);
    });
  }
}

StageProcess* Node::process(std::uint64_t uid) {
  for (StageProcess& s : stages_)
    if (s.uid == uid) return &s;
  return nullptr;
}

void Node::load(std::uint64_t uid, int steps_left) {
  world_.events.after(world_.random.between(100ms, 900ms), [this, uid, steps_left] {
    StageProcess* s = process(uid);
    if (s == nullptr) return;
    if (s->fact != StageFact::Starting && s->fact != StageFact::Loading) return;
    if (world_.faults.on && world_.random.chance(world_.faults.stage_hangs)) {
      ++world_.count.stages_hung_loading;
      return;
    }
    s->fact = steps_left == 0 ? StageFact::Ready : StageFact::Loading;
    s->progress += Bytes{1};
    report(*s);
    if (steps_left > 0) load(uid, steps_left - 1);
  });
}

void Node::kill_stage(std::size_t index) {
  if (index >= stages_.size()) return;
  ++world_.count.stages_killed;
  exit_stage(stages_[index].uid);
}

void Node::exit_stage(std::uint64_t uid) {
  StageProcess* s = process(uid);
  if (s == nullptr || s->fact == StageFact::Exited || s->fact == StageFact::NotReleased) return;
  world_.note("stage exits", index_, static_cast<std::int64_t>(s->epoch.count), s->stop_asked);
  s->fact = StageFact::Exited;
  report(*s);
  if (s->stop_asked || world_.random.chance(0.5)) release(uid);
}

void Node::on_stop(Term term, const StageId& stage, Epoch epoch) {
  if (!obey(policies::check_stop(fence_, term, stage, epoch))) return;
  world_.note("agent got stop", index_, static_cast<std::int64_t>(epoch.count), stage.rank.count);
  bool any = false;
  for (StageProcess& s : stages_) {
    if (s.id != stage || s.epoch > epoch) continue;
    any = true;
    s.stop_asked = true;
    if (s.fact == StageFact::Exited || s.fact == StageFact::NotReleased) {
      release(s.uid);
    } else if (!s.killing) {
      s.killing = true;
      Duration dies = world_.random.between(10ms, 400ms);
      if (world_.faults.on && world_.random.chance(world_.faults.slow_to_die)) {
        ++world_.count.stages_slow_to_die;
        dies = world_.random.between(1s, 8s);
      }
      world_.events.after(dies, [this, uid = s.uid] { exit_stage(uid); });
    }
  }
  if (any) return;
  ReportedStage nothing;
  nothing.stage = stage;
  nothing.epoch = epoch;
  nothing.fact = StageFact::Absent;
  report(nothing);
}

void Node::release(std::uint64_t uid) {
  StageProcess* s = process(uid);
  if (s == nullptr || s->releasing || !agent_up_) return;
  s->releasing = true;
  const int life = life_;
  world_.events.after(world_.random.between(10ms, 500ms), [this, uid, life] { try_release(uid, life); });
}

void Node::try_release(std::uint64_t uid, int life) {
  StageProcess* s = process(uid);
  if (s == nullptr || life != life_ || !agent_up_) return;
  s->releasing = false;
  if (s->failed_releases_left > 0) {
    --s->failed_releases_left;
    ++world_.count.releases_delayed;
    s->fact = StageFact::NotReleased;
    report(*s);
    return;
  }
  ReportedStage gone = reported(*s);
  gone.fact = StageFact::Absent;
  world_.note("stage released", index_, static_cast<std::int64_t>(s->epoch.count));
  world_.checks.process_released(s->id, s->epoch, index_);
  std::erase_if(stages_, [&](const StageProcess& other) { return other.uid == uid; });
  report(gone);
}

ReportedStage Node::reported(const StageProcess& s) const {
  ReportedStage r;
  r.stage = s.id;
  r.epoch = s.epoch;
  r.fact = s.fact;
  r.progress = s.progress;
  r.exit_requested = s.stop_asked;
  if (s.fact == StageFact::Exited && !s.stop_asked)
    r.findings.push_back(finding(Code::STAGE_DIED, name_, text(s.id), "it was killed by signal 9"));
  if (s.fact == StageFact::NotReleased)
    r.findings.push_back(finding(Code::NOT_RELEASED, name_, name_, "memory is not back"));
  return r;
}

void Node::report(const StageProcess& s) {
  report(reported(s));
}

void Node::report(const ReportedStage& r) {
  if (!agent_up_) return;  // the keeper's record tells the next agent
  recent_.push_back(r);
  if (recent_.size() > 8) recent_.pop_front();
  if (sessions_.empty()) {
    if (spool_.size() < 32) spool_.push_back(r);
    return;
  }
  for (const SessionPtr& session : sessions_) {
    session->to_leader->send([this, session, r] {
      if (Leader* l = world_.leader(session->leader))
        l->on_message(session, policies::StageReported{name_, r});
    });
  }
}

void Node::on_verify(const SessionPtr& session, Term term, std::uint64_t request) {
  if (!obey(policies::check_verify(fence_, term)))
    return;  // the daemon closes on it; the new leader asks anew
  const int life = life_;
  const auto send = [this, session, life](Duration after, const policies::Event& event) {
    world_.events.after(after, [this, session, life, event] {
      if (life != life_ || !session->open_at_agent) return;
      session->to_leader->send([this, session, event] {
        if (Leader* l = world_.leader(session->leader)) l->on_message(session, event);
      });
    });
  };
  const Duration whole = world_.random.between(100ms, 1500ms);
  send(whole / 2, policies::VerifyProgressed{name_, request, Bytes{1}});
  policies::VerifyFinished finished{name_, request, {}};
  if (corrupt_)
    finished.findings.push_back(
        finding(Code::HASH_MISMATCH, name_, "model-00007-of-00046.safetensors", "differs"));
  send(whole, finished);
}

void Node::on_probe(const SessionPtr& session, Term term, std::uint64_t request, const std::string& replica,
                    Epoch epoch) {
  const bool accepted = obey(policies::check_probe(fence_, term, replica, epoch, held()));
  const int life = life_;
  const bool proves_nothing = world_.mutation == Mutation::LeaderProvesNothing;
  world_.events.after(world_.random.between(50ms, 500ms), [=, this] {
    if (life != life_ || !session->open_at_agent) return;
    policies::ProbeFinished finished{request, {}, Tokens{100000}};
    const bool lies = world_.faults.on && world_.random.chance(world_.faults.bad_probe);
    if (accepted && world_.replica_ready(replica, epoch) && !lies && !proves_nothing) {
      world_.checks.proven(replica, epoch);
    } else if (!proves_nothing) {
      finished.findings.push_back(finding(Code::NOT_READY, name_, replica + "/0", "no completion"));
    }
    session->to_leader->send([this, session, finished] {
      if (Leader* l = world_.leader(session->leader)) l->on_message(session, finished);
    });
  });
}

}  // namespace troika::sim
