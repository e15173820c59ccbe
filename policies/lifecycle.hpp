// The replicas' state machine: what the leader does about what it hears. Pure: step(state, event, now) ->
// actions.
//
// daemon/cluster feeds it events (agent messages, timers, operator commands) and carries out its actions in
// order; tests/sim drives the same code against a simulated cluster. The contract with whoever carries out
// the actions:
//  - Actions are carried out in the order given. If one of the Persist actions fails, the rest of that list
//  is dropped
//    and the process ends (crash-only: it starts again from what is stored).
//  - What is sent to a node goes to the session named by the last AgentConnected of that node, or is dropped.
//  - Events of a session that is no longer the node's last are dropped before they come here.
//  - A Tick comes at least once a second. Silence while nobody called step (a suspended leader) counts
//  against no node.
//  - What a heartbeat lists is given as StageReported; what it does not list means nothing (it may have been
//  sent before
//    the start arrived). Only AgentConnected, which lists everything, tells by omission.
//  - An agent obeys nothing that came over an earlier session once it has sent a new Hello
//  (policies/fencing.hpp).
//  - A new SendVerify to a node supersedes an earlier one there (also an earlier leader's); its answer is not
//  awaited.
//  - Refusals: of a StartStage -> StartRefused; of a Verify -> VerifyFinished with a CANNOT_TELL finding; of
//  a Probe ->
//    ProbeFinished with an error finding; STALE_TERM of anything else -> close the session, the next Hello
//    tells the term.
//  - PersistReplica replaces the whole row, and LeaderStarted brings every field of it back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "policies/copies.hpp"
#include "vocabulary/finding.hpp"
#include "vocabulary/names.hpp"
#include "vocabulary/units.hpp"

namespace troika::policies {

// ---- the plan: fixed for the life of a leader process

struct ReplicaPlan {
  std::string name;
  std::vector<std::string> nodes;     // by rank
  std::vector<std::uint32_t> layers;  // by rank
};

struct RestartRule {
  std::uint32_t attempts = 1;  // automatic restarts within `window`; one more failure opens the breaker
  Duration window = std::chrono::minutes{30};
  Duration backoff = std::chrono::seconds{2};  // before an automatic restart, after the release is proven
};

enum class FailoverMode { ActiveStandby, ActiveActive };

// Limits of waiting; none of them bounds work that shows progress (a slow load is not stuck: mode 52).
struct Patience {
  Duration reconcile =
      std::chrono::seconds{15};  // after a leader's start: agents that ran stages come back within
  Duration node_lost = std::chrono::seconds{15};    // silence of a node until its stages count as lost
  Duration no_progress = std::chrono::minutes{20};  // verifying, starting, loading without any progress
  Duration prove = std::chrono::minutes{10};        // one canary completion
  Duration stop_grace = std::chrono::seconds{10};   // between SIGTERM and SIGKILL
  Duration drain = std::chrono::minutes{10};        // requests in flight may finish
  Duration resend = std::chrono::seconds{5};        // an unanswered StopStage is sent again
  Duration blocked = std::chrono::seconds{60};  // a command's wait for a node that is away or not released
};

struct ClusterPlan {
  std::vector<ReplicaPlan> replicas;
  RestartRule restart;
  FailoverMode failover = FailoverMode::ActiveStandby;
  Patience patience;
};

// ---- the state

enum class Phase { Stopped, Verifying, Starting, Loading, Proving, Serving, Draining, Stopping, Failed };
std::string_view name(Phase phase);

enum class StageFact {  // what the leader last heard of a rank's stage of the replica's epoch
  Unknown,              // nothing heard since the node (re)connected, or the node is away
  Absent,               // the node says that nothing of this replica is there (released, or never started)
  Starting,
  Loading,
  Ready,
  Exited,       // ended; leftovers not yet looked for
  NotReleased,  // something is left, or the node could not look: the node is blocked until it says otherwise
};

// Defined in lifecycle_state.hpp by the owner of this room; readers use the accessors below.
struct ClusterState;

// ---- events

struct Tick {};
struct StoredReplica {  // what the store knows at a leader's start
  std::string name;
  bool desired_running = false;
  Epoch epoch;          // highest ever used
  bool proven = false;  // that epoch had been proven and not ended, as far as was written down
  bool breaker_open = false;
  bool ended = false;          // the end of that epoch was decided and, if it was a failure, counted
  bool released = false;       // every rank of it was seen to be gone
  bool active = false;         // served first by the gateway (active-standby)
  std::uint32_t failures = 0;  // within the restart window when this was written
  Tokens kv_capacity;          // of that epoch, from its proof
};
struct LeaderStarted {  // first event
  Term stored_term;     // highest ever used by this store
  std::vector<StoredReplica> replicas;
};
struct ReportedStage {
  StageId stage;
  Epoch epoch;
  StageFact fact{};  // never Unknown
  Bytes progress;
  std::vector<Finding> findings;  // of an exit or a release that failed
  bool exit_requested = false;
};
struct AgentConnected {
  std::string node;
  Term highest_term;
  std::map<std::string, Epoch> highest_epochs;
  std::vector<ReportedStage> stages;  // all that exist on the node, of any epoch
  std::string boot_id;
};
struct AgentDisconnected {
  std::string node;
};
struct AgentHeard {
  std::string node;
};  // a heartbeat
struct VerifyProgressed {
  std::string node;
  std::uint64_t request = 0;
  Bytes done;
};
struct VerifyFinished {
  std::string node;
  std::uint64_t request = 0;
  std::vector<Finding> findings;
  NodeCopies copies{};  // what it has proven of the model
};
struct StageReported {
  std::string node;
  ReportedStage report;
};
struct StartRefused {
  std::string node;
  StageId stage;
  Epoch epoch;
  Finding finding;
};
struct ProbeFinished {
  std::uint64_t request = 0;
  std::vector<Finding> findings;  // any error: not proven
  Tokens kv_capacity;
};
// Somebody else than an agent (the gateway's hello, a refusal) told of a term that was obeyed there. Above
// ours: ours is raised, and the route is given again under it.
struct TermHeard {
  Term term;
};
struct GatewayDrained {
  std::string replica;
  Epoch epoch;
};  // no request of it is in flight any more
enum class Wish { Start, Stop, Restart, Drain, Failover };
struct Wished {
  std::uint64_t command = 0;  // 0: nobody waits for the outcome
  Wish wish{};
  std::string replica;  // empty: all (failover: the other one)
};
using Event = std::variant<Tick, LeaderStarted, AgentConnected, AgentDisconnected, AgentHeard,
                           VerifyProgressed, VerifyFinished, StageReported, StartRefused, ProbeFinished,
                           GatewayDrained, Wished, TermHeard>;

// ---- actions

struct PersistTerm {
  Term term;
};
// Welcome with this term, before anything else to that agent. Comes with every AgentConnected (node: that
// one) and when the term changes (node empty: every connected agent). Nobody else sends Welcome.
struct AnnounceTerm {
  Term term;
  std::string node;
};
struct PersistReplica {
  StoredReplica replica;
};
struct SendVerify {
  std::string node;
  std::uint64_t request = 0;
  StageId stage;
};
struct SendStart {
  std::string node;
  StageId stage;
  Epoch epoch;
};
// epoch: this and any lower one
struct SendStop {
  std::string node;
  StageId stage;
  Epoch epoch;
  Duration grace{};
  std::string reason;
};
struct SendProbe {
  std::string node;
  std::uint64_t request = 0;
  std::string replica;
  Epoch epoch;
};
struct RouteEntry {
  std::string replica;
  Epoch epoch;
  bool draining = false;
  Tokens kv_capacity;
  bool operator==(const RouteEntry&) const = default;
};
// entries[0] is served next, the next ones take over; draining ones come last and get no new request. After a
// leader's start none is sent until the proven replicas were heard of (or one was found dead): the gateway
// goes on meanwhile. Every entry's rank 0 has connected to this leader, so its relay address is known.
struct SetRoute {
  std::vector<RouteEntry> entries;
  std::string reason;
};
struct OpenIncident {
  std::string subject;
  std::string title;
  std::vector<Finding> findings;
};  // or adds to the open one
// These two do nothing where the subject has no open incident (after a leader's start it is not known here).
struct NoteIncident {
  std::string subject;
  std::string action;
  std::vector<Finding> findings;
  std::string title;  // a nearer cause has come to light: this is its title now; else empty
};
struct CloseIncident {
  std::string subject;
  std::string action;
};
struct FinishCommand {
  std::uint64_t command = 0;
  Verdict verdict{};
  std::string text;
  std::vector<Finding> findings;
};
using Action = std::variant<PersistTerm, AnnounceTerm, PersistReplica, SendVerify, SendStart, SendStop,
                            SendProbe, SetRoute, OpenIncident, NoteIncident, CloseIncident, FinishCommand>;

// ---- the machine

// What people and other rooms may read of a replica.
struct ReplicaView {
  std::string name;
  bool desired_running = false;
  Phase phase{};
  Epoch epoch;
  bool proven = false;
  bool breaker_open = false;
  bool routed = false;  // entries[0] of the route in force
  Tokens kv_capacity;   // 0: not known
  Instant phase_since;
  std::string reason;             // one line: why it is in this phase
  std::vector<Finding> findings;  // what stopped it, or warnings of its last verification
  std::vector<StageFact> stages;  // by rank
};

class Cluster {
 public:
  explicit Cluster(ClusterPlan plan);
  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  std::vector<Action> step(const Event& event, Instant now);

  Term term() const;
  std::vector<ReplicaView> replicas() const;

 private:
  std::unique_ptr<ClusterState> state_;
};

}  // namespace troika::policies
