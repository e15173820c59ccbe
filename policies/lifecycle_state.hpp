// The state behind policies/lifecycle.hpp, private to this room. One file a part of it:
//   lifecycle.cpp          the step: an event, then settling what follows from it
//   lifecycle_nodes.cpp    what nodes say: connections, stages, terms; sweeping what nobody wants
//   lifecycle_start.cpp    verifying, starting, loading, proving
//   lifecycle_end.cpp      failing, stopping, the proof of release, the breaker
//   lifecycle_adopt.cpp    a leader's start: what runs is found again
//   lifecycle_route.cpp    what the gateway serves
//   lifecycle_commands.cpp what operators ask for
//
// Shape: an event only changes facts; settle() then derives every consequence from the facts, in a fixed
// order, until nothing moves. So the order in which facts arrive does not matter, and each rule stands in one
// place.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "policies/lifecycle.hpp"

namespace troika::policies {

inline constexpr std::size_t kMaxFindings =
    64;  // kept of a replica, rank or command; more add nothing for people
inline constexpr std::size_t kMaxStrays = 64;  // a node; further ones are told again with the next connection
inline constexpr std::size_t kMaxNodes =
    256;  // nodes that are not in the plan are remembered up to this many
inline constexpr std::size_t kMaxCommands = 64;  // waiting at once; a further one is refused
// Steps further apart than this mean that the leader itself did not run; Ticks come once a second.
inline constexpr Duration kUnwatched = std::chrono::seconds{3};

struct RankState {
  StageFact fact = StageFact::Unknown;
  Bytes progress;
  std::string boot_id;            // of the node when the stage was started or found again
  bool rebooted = false;          // the node has another boot_id since
  std::vector<Finding> findings;  // of its verification, then of its end
  std::uint64_t verify_request = 0;
  Bytes verify_progress;
  bool verified = false;
  NodeCopies copies;  // once verified
  bool stop_sent = false;
  Instant stop_sent_at;
};

struct FailureRecord {
  Instant at;
  Epoch epoch;
  std::vector<Finding> findings;
};

struct ReplicaState {
  ReplicaPlan plan;
  Phase phase = Phase::Stopped;
  Instant phase_since;
  Instant waited_from;  // start of the wait that Patience limits: the phase's begin, or the last progress
  std::string reason;
  bool desired = false;
  bool reconciling = false;  // a leader started and has not yet heard of every rank of the stored epoch
  Epoch epoch;
  Epoch heard;  // highest epoch of this replica that anybody ever spoke of
  bool proven = false;
  bool ended = false;
  bool released = true;
  bool breaker_open = false;
  Tokens kv_capacity;
  std::vector<RankState> ranks;
  std::vector<Finding> findings;
  std::vector<Finding> stop_findings;  // what went wrong while a stop or drain was under way
  std::vector<FailureRecord> failures;
  std::string failed;       // head of the incident's title, of the epoch that failed; empty: it did not
  int failed_nearness = 0;  // of the cause in that title
  Instant not_before;       // of the next start
  std::uint64_t probe_request = 0;
  bool incident_open = false;
  bool blocked = false;
  bool blocked_told = false;
  Instant blocked_since;
};

// Something of ours on a node that nobody wants: another epoch, a stopped or unknown replica, a wrong rank.
struct Stray {
  StageId stage;
  Epoch epoch;
  StageFact fact{};
  std::vector<Finding> findings;
  bool stop_sent = false;
  Instant stop_sent_at;
};

struct NodeState {
  bool connected = false;
  bool silent = false;  // the session is there, but nothing was heard for Patience::node_lost
  Instant heard_at;
  Instant away_since;
  std::string boot_id;
  Term announced;  // in this leadership
  std::vector<Stray> strays;
};

struct CommandState {
  std::uint64_t id = 0;
  Wish wish{};
  Instant at;
  std::vector<std::size_t> pending;  // replicas whose outcome is open
  Verdict verdict = Verdict::Ok;
  std::string text;
  std::vector<Finding> findings;
};

struct Outcome {
  Verdict verdict{};
  std::string text;
  std::vector<Finding> findings;
};

void add_findings(std::vector<Finding>& to,
                  const std::vector<Finding>& from);  // up to kMaxFindings, no repeats
std::string_view name(Wish wish);
bool alive(StageFact fact);  // Starting, Loading or Ready

struct ClusterState {
  explicit ClusterState(ClusterPlan plan_of_cluster);

  // lifecycle.cpp
  std::vector<Action> step(const Event& event, Instant at);
  void settle();
  bool advance(ReplicaState& r);
  void enter(ReplicaState& r, Phase phase, std::string reason);
  void persist(const ReplicaState& r);
  std::uint64_t new_request();
  std::string subject(const ReplicaState& r) const;
  void open_incident(ReplicaState& r, std::string title, std::vector<Finding> findings);
  void note_incident(const ReplicaState& r, std::string action, std::vector<Finding> findings = {},
                     std::string title = {});
  std::string nearer_title(ReplicaState& r, const Finding& cause);
  void close_incident(ReplicaState& r, std::string action);
  std::size_t index_of(const ReplicaState& r) const;
  NodeState& node_of(const ReplicaState& r, std::size_t rank);
  const NodeState& node_of(const ReplicaState& r, std::size_t rank) const;
  bool lost(const NodeState& node) const;

  void on(const Tick& event);
  void on(const LeaderStarted& event);
  void on(const AgentConnected& event);
  void on(const AgentDisconnected& event);
  void on(const AgentHeard& event);
  void on(const VerifyProgressed& event);
  void on(const VerifyFinished& event);
  void on(const StageReported& event);
  void on(const StartRefused& event);
  void on(const ProbeFinished& event);
  void on(const GatewayDrained& event);
  void on(const Wished& event);
  void on(const TermHeard& event);

  // lifecycle_nodes.cpp
  void credit_unwatched(Duration gap);
  NodeState* hear(const std::string& name);
  void forget_session(const std::string& name, NodeState& node);
  void notice_silence();
  void hear_term(const AgentConnected& event, NodeState& node);
  void raise_term(Term heard);
  ReplicaState* replica_named(const std::string& name);
  RankState* rank_on(const std::string& node, const StageId& stage);
  void take_report(ReplicaState& r, RankState& rank, const ReportedStage& report);
  void take_findings(ReplicaState& r, RankState& rank, const ReportedStage& report);
  void add_stray(NodeState& node, const ReportedStage& report);
  void sweep();
  bool has_stray_of(const NodeState& node, const std::string& replica) const;

  // lifecycle_start.cpp
  bool clean(const ReplicaState& r) const;  // all its nodes are connected, and nothing of ours is on them
  bool try_start(ReplicaState& r);
  bool advance_verifying(ReplicaState& r);
  bool judge_verification(ReplicaState& r);
  void send_verify(ReplicaState& r, std::size_t rank);
  void begin_epoch(ReplicaState& r);
  bool advance_loading(ReplicaState& r);
  bool advance_proving(ReplicaState& r);
  void serve(ReplicaState& r, std::string reason);

  // lifecycle_end.cpp
  std::vector<Finding> causes_of_failure(const ReplicaState& r) const;
  bool fail_on_causes(ReplicaState& r);
  void fail(ReplicaState& r, std::vector<Finding> causes);
  void end_epoch(ReplicaState& r, std::string reason);
  bool advance_draining(ReplicaState& r);
  bool advance_stopping(ReplicaState& r);
  void send_stop(ReplicaState& r, std::size_t rank);
  void after_release(ReplicaState& r);
  std::vector<Finding> blockers(const ReplicaState& r) const;
  void watch_blocked(ReplicaState& r);

  // lifecycle_adopt.cpp
  void restore(const StoredReplica& stored);
  bool reconcile(ReplicaState& r);
  bool presumed(
      const ReplicaState& r) const;  // proven as far as is stored, not yet confirmed since the leader's start

  // lifecycle_route.cpp
  bool routable(const ReplicaState& r) const;
  void choose_active();
  void update_route(bool at_once);
  std::string reason_of_route() const;
  void send_route();

  // lifecycle_commands.cpp
  void start_wish(ReplicaState& r);
  void stop_wish(ReplicaState& r);
  void restart_wish(ReplicaState& r);
  void drain_wish(ReplicaState& r);
  void supersede(std::size_t replica, Wish wish, std::uint64_t by);
  std::vector<std::size_t> targets_of(const Wished& wished);
  void refuse(const Wished& wished, std::string text);
  bool outcome_of(const CommandState& command, const ReplicaState& r, Outcome& outcome) const;
  void finish_commands();

  ClusterPlan plan;
  bool started = false;
  Instant now;
  Term term;
  std::uint64_t requests = 0;
  Instant reconcile_until;
  std::vector<ReplicaState> replicas;
  std::map<std::string, NodeState> nodes;
  std::vector<CommandState> commands;
  std::size_t active = 0;              // served first where it serves
  std::size_t failover_to = SIZE_MAX;  // becomes active as soon as it serves; SIZE_MAX: none
  bool route_sent = false;
  std::string route_reason;  // as last sent
  std::vector<RouteEntry> route;
  std::vector<Action> out;
};

}  // namespace troika::policies
