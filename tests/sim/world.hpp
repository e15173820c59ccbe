// One run: nodes with agents and stages, leaders, a gateway with clients, and what goes wrong between them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checks.hpp"
#include "events.hpp"
#include "pipe.hpp"
#include "policies/admission.hpp"
#include "policies/fencing.hpp"
#include "policies/lifecycle.hpp"
#include "random.hpp"
#include "settings.hpp"
#include "trace.hpp"

namespace troika::sim {

struct World;
class Leader;

// A connection between an agent and one leader process. Each end closes on its own.
struct Session {
  int node = 0;
  int leader = 0;
  bool open_at_agent = true;
  bool open_at_leader = false;  // from the Hello on
  bool void_at_agent = false;   // a newer one was opened to the same leader
  Instant heard_at_agent;
  Instant heard_at_leader;
  std::shared_ptr<Pipe> to_agent;
  std::shared_ptr<Pipe> to_leader;
};
using SessionPtr = std::shared_ptr<Session>;

// A stage's process with its keeper: it outlives its agent.
struct StageProcess {
  std::uint64_t uid = 0;
  StageId id;
  Epoch epoch;
  policies::StageFact fact = policies::StageFact::Starting;
  Bytes progress;
  bool stop_asked = false;
  bool killing = false;
  bool releasing = false;
  int failed_releases_left = 0;  // the release cannot be proven this many times
};

class Node {
 public:
  Node(World& world, int index);

  const std::string& name() const { return name_; }
  bool healthy() const { return powered_ && agent_up_ && !corrupt_; }
  bool agent_up() const { return agent_up_; }
  bool gone() const { return !powered_; }
  const std::vector<StageProcess>& stages() const { return stages_; }
  bool serves(const std::string& replica, Epoch epoch) const;

  void boot();
  void power_off(bool for_good);
  void kill_agent();
  void start_agent();
  void kill_stage(std::size_t index);
  void set_corrupt(bool corrupt) { corrupt_ = corrupt; }
  void cut_off(Instant until, bool to_agent, bool to_leader);
  void heal();  // what was cut is whole again
  void leader_gone(int leader);

 private:
  friend class Leader;
  void dial();
  void open_session(int leader);
  void close_session(const SessionPtr& session);
  void beat();
  // Runs `obey` at the agent when the message arrives, if the agent still listens on this session.
  void deliver(const SessionPtr& session, int life, const std::function<void()>& obey);

  void on_welcome(Term term);
  void on_start(const SessionPtr& session, Term term, const StageId& stage, Epoch epoch);
  void on_stop(Term term, const StageId& stage, Epoch epoch);
  void on_verify(const SessionPtr& session, Term term, std::uint64_t request);
  void on_probe(const SessionPtr& session, Term term, std::uint64_t request, const std::string& replica,
                Epoch epoch);
  bool obey(const policies::FenceAnswer& answer);
  std::vector<policies::HeldStage> held() const;

  StageProcess* process(std::uint64_t uid);
  void load(std::uint64_t uid, int steps_left);
  void exit_stage(std::uint64_t uid);
  void release(std::uint64_t uid);
  void try_release(std::uint64_t uid, int life);
  void report(const policies::ReportedStage& report);
  void report(const StageProcess& stage);
  policies::ReportedStage reported(const StageProcess& stage) const;

  World& world_;
  int index_;
  std::string name_;
  int boot_ = 0;
  bool powered_ = false;
  bool dead_for_good_ = false;
  bool agent_up_ = false;
  int life_ = 0;  // of the agent's process
  bool corrupt_ = false;
  Instant to_agent_from_{};
  Instant to_leader_from_{};
  policies::FenceState fence_;
  std::vector<StageProcess> stages_;
  std::deque<policies::ReportedStage> spool_;   // not told to anybody yet
  std::deque<policies::ReportedStage> recent_;  // told lately
  std::vector<SessionPtr> sessions_;
};

// What outlives leaders.
struct Store {
  Term term;
  std::map<std::string, policies::StoredReplica> replicas;
  int owner = 0;                 // only its process may write
  std::uint64_t generation = 0;  // counts losses
};

// A leader's process: what daemon/cluster does around the policy.
class Leader {
 public:
  Leader(World& world, int id);
  int id() const { return id_; }
  bool alive() const { return alive_; }
  Instant listens_from() const { return paused_until_; }
  std::vector<policies::ReplicaView> replicas() const { return cluster_.replicas(); }

  void begin();
  void die();
  void die_between_actions() { actions_left_ = static_cast<int>(1 + random_below(12)); }
  void spare() { actions_left_ = -1; }
  void pause(Duration length);
  void command(policies::Wish wish, const std::string& replica);

  void on_hello(const SessionPtr& session, policies::AgentConnected hello);
  void on_session_end(const SessionPtr& session);
  void on_message(const SessionPtr& session, const policies::Event& event);
  void on_gateway(Term term);
  void on_drained(const std::string& replica, Epoch epoch);

 private:
  std::uint64_t random_below(std::uint64_t bound);
  void tick();
  void feed(const policies::Event& event);
  void act(const policies::PersistTerm& action);
  void act(const policies::AnnounceTerm& action);
  void act(const policies::PersistReplica& action);
  void act(const policies::SendVerify& action);
  void act(const policies::SendStart& action);
  void act(const policies::SendStop& action);
  void act(const policies::SendProbe& action);
  void act(const policies::SetRoute& action);
  void act(const policies::OpenIncident& action);
  void act(const policies::NoteIncident& action);
  void act(const policies::CloseIncident& action);
  void act(const policies::FinishCommand& action);
  bool may_write();
  SessionPtr session_of(const std::string& node) const;
  void give_route();

  World& world_;
  int id_;
  policies::Cluster cluster_;
  bool alive_ = true;
  int actions_left_ = -1;
  Instant paused_until_{};
  Instant last_tick_{};
  std::map<std::string, SessionPtr> sessions_;
  std::shared_ptr<Pipe> to_gateway_;
  std::uint64_t generation_ = 0;        // of its last route
  std::uint64_t store_generation_ = 0;  // of the store it began with
  std::optional<std::vector<policies::RouteEntry>> route_;
  std::map<std::string, Epoch> begun_;  // by this process
  std::map<std::pair<std::string, std::uint64_t>, bool> stops_sent_;
};

class Gateway {
 public:
  Gateway(World& world, policies::AdmissionRule rule);
  void start();
  void crash();
  void reboot();
  bool up() const { return up_; }
  Instant listens_from() const { return cut_until_; }
  void cut_off(Instant until) { cut_until_ = until; }
  void on_route(policies::RouteFence offered, const std::vector<policies::RouteEntry>& entries, int leader);
  void request(Duration length);
  void greet(Leader& leader);
  // The first entry, if it would answer now.
  bool answers() const;

 private:
  struct Open {
    std::uint64_t number;
    std::uint64_t ticket;
    std::string replica;
    Epoch epoch;
  };
  Instant clock() const;
  void decide(std::uint64_t number, policies::RequestSize size, Duration length, bool waited,
              Instant entered);
  void pass(std::uint64_t number, const policies::Admitted& admitted, Duration length);
  void finish(std::uint64_t number);
  void ask_first_waiting();
  void tell_drained();
  void tell(std::function<void(Leader&)> what);

  struct Waiter {
    std::uint64_t number;
    policies::RequestSize size;
    Duration length;
    Instant leaves_at;
  };

  World& world_;
  policies::AdmissionRule rule_;
  policies::Admission admission_;
  bool up_ = false;
  int life_ = 0;
  int boot_ = 0;
  Duration clock_offset_{};
  Instant cut_until_{};
  std::uint64_t numbers_ = 0;
  std::vector<Open> open_;
  std::deque<Waiter> waiters_;
  std::shared_ptr<Pipe> to_leader_;
  // Written down.
  std::optional<policies::AdmissionRecord> record_;
  policies::RouteFence fence_;
  std::vector<policies::RouteEntry> entries_;
};

// Which faults a run has; each run draws its own mixture, so that rare ones are not always drowned by
// frequent ones.
struct Faults {
  bool on = true;
  double stage_dies = 0, stage_hangs = 0, slow_to_die = 0, release_delayed = 0, bad_probe = 0, corrupt = 0;
  double leader_crash = 0, leader_crash_between = 0, leader_pause = 0, overlap = 0, store_lost = 0;
  double agent_crash = 0, reboot = 0, cut = 0, gateway_crash = 0, gateway_reboot = 0, gateway_cut = 0;
  double command = 0;
  Duration mean_gap = std::chrono::seconds{4};
};

struct World {
  World(std::uint64_t seed, Mutation mutated);
  ~World();  // messages under way hold their session, which holds the pipe they are in
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Runs the whole schedule; false: a check failed.
  bool run();
  void print_failure() const;

  std::shared_ptr<Pipe> new_pipe(std::function<Instant()> ready);
  Leader* leader(int id);
  Leader* newest_leader();  // alive, else none
  void start_leader();
  void overlap();
  void lead_again_later();
  void note(const char* what, std::int64_t a = 0, std::int64_t b = 0, std::int64_t c = 0) {
    trace.add(events.now(), what, a, b, c);
  }
  int node_index(const std::string& name) const { return name[1] - '1'; }
  int replica_index(const std::string& name) const { return name.empty() ? -1 : name[0] - 'a'; }
  bool replica_ready(const std::string& replica, Epoch epoch) const;
  bool replica_healthy(const std::string& replica) const;

  std::uint64_t seed;
  Mutation mutation;
  Random random;
  Events events;
  Trace trace;
  Counters count;
  policies::ClusterPlan plan;
  Faults faults;
  Checks checks;
  Store store;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Leader>> leaders;  // all that ever were, by id
  std::unique_ptr<Gateway> gateway;
  std::uint64_t commands = 0;
  std::uint64_t uids = 0;

 private:
  std::vector<std::weak_ptr<Pipe>> pipes_;

  void run_for(Duration length, const std::function<bool()>& until = nullptr);
  void fault();
  void wish(policies::Wish wish, const std::string& replica);
  void client();
  void cease_faults();
  bool settled() const;
  void expect_service();
  void expect_start();
  void expect_stop();
  void command_at_random();
};

}  // namespace troika::sim
