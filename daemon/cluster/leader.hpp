// The leader's one seat of decision: what is heard goes into policies::Cluster as events, what comes out is
// carried out in order. Reads no clock and opens no socket itself; everything happens on one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/cluster.hpp"
#include "daemon/cluster/audit.hpp"
#include "daemon/cluster/nodes.hpp"
#include "daemon/incidents/incidents.hpp"
#include "daemon/store/store.hpp"
#include "policies/lifecycle.hpp"
#include "protocol/codec.hpp"
#include "protocol/messages.hpp"

namespace troika::daemon {

class Leader {
 public:
  struct Clock {
    std::function<Instant()> now;
    std::function<WallTime()> wall;
  };
  struct Hooks {
    // The store could not be written. The process must end: what is not written must not be acted on.
    std::function<void(const Error&)> broken;
    // The route changed; the gateway is to be told.
    std::function<void(const protocol::Route&)> route;
    // A command is finished.
    std::function<void(const policies::FinishCommand&)> finished;
    // The audit is finished. May be absent.
    std::function<void(const protocol::AuditReply&)> audited{};
  };

  Leader(const config::ClusterConfig& config, Store& store, Incidents& incidents, Clock clock, Hooks hooks);

  // Takes up what the store knows. First.
  Status start();
  // Every 250 ms.
  void tick();

  // ---- agents

  // Why this agent cannot be taken: one with its name, on another machine, is connected and was heard just
  // now.
  std::optional<std::string> name_taken(const protocol::Hello& hello, const std::string& from) const;
  // A new connection of a node that the configuration names. Returns its session: what comes with an older
  // one of the same node is dropped.
  std::uint64_t connected(std::shared_ptr<AgentLine> line, protocol::Hello hello);
  void disconnected(const std::string& node, std::uint64_t session);
  // False: the connection is of no use any more and is to be closed.
  bool received(const std::string& node, std::uint64_t session, const protocol::Envelope& envelope);

  // ---- operators

  void wish(std::uint64_t command, protocol::Verb verb, std::string replica);
  // One line of how each replica fares that a command is about (all if empty).
  std::string progress(const std::string& replica) const;

  // Has every node prove its model, whatever it is doing, and tells hooks.audited, not before the next tick.
  // One that runs already counts if it is as deep. Error: one that is not so deep runs.
  Status begin_audit(bool deep);
  // Nobody waits for it any more.
  void end_audit();
  const std::optional<Audit>& audit() const { return audit_; }

  // ---- the gateway

  void term_heard(Term term) { step(policies::TermHeard{term}); }
  // Requests of these epochs are in flight at the gateway, which has applied the route in force; others are
  // not.
  void gateway_loads(const std::vector<protocol::TargetLoad>& loads);
  // No gateway runs, so nothing is in flight.
  void no_gateway() { gateway_loads({}); }

  // ---- for status

  const config::ClusterConfig& config() const { return config_; }
  const policies::Cluster& cluster() const { return cluster_; }
  const Nodes& nodes() const { return nodes_; }
  // Absent: not decided yet; the gateway goes on with what it has.
  const std::optional<protocol::Route>& route() const { return route_; }
  Instant now() const { return clock_.now(); }

 private:
  // What a message to an agent was about, should it be refused.
  struct Sent {
    enum class About { Verify, Start, Stop, Probe, Audit } about{};
    StageId stage;
    Epoch epoch;
    std::uint64_t request = 0;
  };
  // Answers come within seconds; older ones are of no interest.
  static constexpr std::size_t kRememberedMessages = 1024;

  void step(policies::Event event);
  bool carry_out(const policies::Action& action);
  Status carry(const policies::PersistTerm& action);
  Status carry(const policies::AnnounceTerm& action);
  Status carry(const policies::PersistReplica& action);
  Status carry(const policies::SendVerify& action);
  Status carry(const policies::SendStart& action);
  Status carry(const policies::SendStop& action);
  Status carry(const policies::SendProbe& action);
  Status carry(const policies::SetRoute& action);
  Status carry(const policies::OpenIncident& action);
  Status carry(const policies::NoteIncident& action);
  Status carry(const policies::CloseIncident& action);
  Status carry(const policies::FinishCommand& action);
  void give_route();
  void drop_old_keys(const std::string& replica, Epoch epoch);
  const std::string& link_key(const std::string& replica, Epoch epoch);

  template <protocol::Message T>
  std::uint64_t send(Node& node, const T& message);
  template <protocol::Message T>
  void send(Node& node, const T& message, Sent about);

  bool take(const std::string& name, Node& node, const protocol::Envelope& envelope);
  Status take(const std::string& name, Node& node, const protocol::Heartbeat& heartbeat);
  Status take(const std::string& name, Node& node, const protocol::StageEvent& event);
  Status take(const std::string& name, Node& node, const protocol::VerifyProgress& progress);
  Status take(const std::string& name, Node& node, const protocol::VerifyDone& done);
  Status take(const std::string& name, Node& node, const protocol::AuditProgress& progress);
  Status take(const std::string& name, Node& node, const protocol::AuditDone& done);
  Status take(const std::string& name, Node& node, const protocol::ProbeDone& done);
  Status take(const std::string& name, Node& node, const protocol::Refusal& refusal);
  void refused(const std::string& name, const Sent& sent, const protocol::Refusal& refusal);
  std::string reason_of(const std::string& replica) const;
  bool broken(const Status& status);
  void audit_lost(const std::string& node);
  void finish_audit();  // if every node has answered

  const config::ClusterConfig& config_;
  Store& store_;
  Incidents& incidents_;
  Clock clock_;
  Hooks hooks_;
  policies::Cluster cluster_;
  Nodes nodes_;
  std::deque<policies::Event> events_;  // waiting for the one in hand
  std::map<std::string, std::uint64_t> sessions_;
  std::map<std::uint64_t, Sent> sent_;                              // by message id
  std::map<std::uint64_t, StageId> probes_;                         // by request
  std::map<std::pair<std::string, Epoch>, std::string> link_keys_;  // never written down
  std::optional<policies::SetRoute> set_route_;
  std::optional<protocol::Route> route_;
  std::uint64_t generation_ = 0;
  std::optional<Audit> audit_;
  std::uint64_t next_audit_ = 1;
  std::uint64_t next_session_ = 1;
  std::uint64_t next_message_ = 1;
  bool stepping_ = false;
  bool broken_ = false;
};

template <protocol::Message T>
std::uint64_t Leader::send(Node& node, const T& message) {
  const auto id = next_message_++;
  if (node.line) node.line->send(protocol::encode(message, id));
  return id;
}

template <protocol::Message T>
void Leader::send(Node& node, const T& message, Sent about) {
  sent_[send(node, message)] = std::move(about);
  while (sent_.size() > kRememberedMessages)
    sent_.erase(sent_.begin());
}

}  // namespace troika::daemon
