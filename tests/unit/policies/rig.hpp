// A leader's policy in the hand of a test: two replicas of three nodes each, n1 to n3 and n4 to n6, and words
// for what agents do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "policies/lifecycle.hpp"

namespace troika::policies::test {

using namespace std::chrono_literals;

inline StageId stage(const std::string& replica, std::uint32_t rank) {
  return {replica, Rank{rank}};
}

class Rig {
 public:
  Rig() : Rig(two_replicas()) {}
  explicit Rig(ClusterPlan its_plan) : plan(std::move(its_plan)), cluster(plan) {}

  static ClusterPlan two_replicas() {
    ClusterPlan p;
    p.replicas = {{"a", {"n1", "n2", "n3"}, {14, 14, 15}}, {"b", {"n4", "n5", "n6"}, {14, 14, 15}}};
    return p;
  }

  std::vector<Action>& step(const Event& event) {
    last = cluster.step(event, now);
    for (const Action& action : last) {
      if (const auto* verify = std::get_if<SendVerify>(&action))
        verify_requests[verify->node] = verify->request;
      if (const auto* probe = std::get_if<SendProbe>(&action))
        probe_requests[probe->replica] = probe->request;
      if (const auto* replica = std::get_if<PersistReplica>(&action))
        stored[replica->replica.name] = replica->replica;
      if (const auto* term = std::get_if<PersistTerm>(&action)) stored_term = term->term;
      if (const auto* route_set = std::get_if<SetRoute>(&action)) route = route_set->entries;
      all.push_back(action);
    }
    return last;
  }

  void lead(Term term = {}, std::vector<StoredReplica> replicas = {}) {
    step(LeaderStarted{term, std::move(replicas)});
  }

  std::vector<Action>& connect(const std::string& node, std::vector<ReportedStage> stages = {},
                               const std::string& boot_id = "boot-1", Term highest = {},
                               std::map<std::string, Epoch> epochs = {}) {
    connected[node] = true;
    return step(AgentConnected{node, highest, std::move(epochs), std::move(stages), boot_id});
  }
  void disconnect(const std::string& node) {
    connected[node] = false;
    step(AgentDisconnected{node});
  }
  void connect_all() {
    for (const ReplicaPlan& r : plan.replicas)
      for (const std::string& node : r.nodes)
        connect(node);
  }

  static ReportedStage reported(const std::string& replica, std::uint32_t rank, Epoch epoch, StageFact fact,
                                std::vector<Finding> findings = {}) {
    ReportedStage r;
    r.stage = stage(replica, rank);
    r.epoch = epoch;
    r.fact = fact;
    r.findings = std::move(findings);
    return r;
  }
  std::string node_of(const std::string& replica, std::size_t rank) const {
    for (const ReplicaPlan& r : plan.replicas)
      if (r.name == replica) return r.nodes[rank];
    return {};
  }
  std::vector<Action>& report(const std::string& replica, std::uint32_t rank, StageFact fact,
                              std::vector<Finding> findings = {}) {
    return report_epoch(replica, rank, view(replica).epoch, fact, std::move(findings));
  }
  std::vector<Action>& report_epoch(const std::string& replica, std::uint32_t rank, Epoch epoch,
                                    StageFact fact, std::vector<Finding> findings = {}) {
    return step(
        StageReported{node_of(replica, rank), reported(replica, rank, epoch, fact, std::move(findings))});
  }
  void report_all(const std::string& replica, StageFact fact) {
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      report(replica, rank, fact);
  }

  std::vector<Action>& wish(Wish what, const std::string& replica, std::uint64_t command = 0) {
    return step(Wished{command, what, replica});
  }
  void verify(const std::string& replica, const std::vector<Finding>& findings_of_rank_1 = {}) {
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const std::string node = node_of(replica, rank);
      const std::uint64_t request = verify_requests[node];
      step(VerifyFinished{node, request, rank == 1 ? findings_of_rank_1 : std::vector<Finding>{}});
    }
  }
  std::vector<Action>& probe(const std::string& replica, std::vector<Finding> findings = {}) {
    return step(ProbeFinished{probe_requests[replica], std::move(findings), Tokens{1000}});
  }
  // Ticks once a second, with a heartbeat of each connected node.
  void pass(Duration time) {
    for (; time > Duration::zero(); time -= 1s) {
      now += std::min<Duration>(time, 1s);
      for (const auto& [node, is_connected] : connected)
        if (is_connected) step(AgentHeard{node});
      step(Tick{});
    }
  }

  // To a phase by the usual way; the leader has started and all nodes are connected.
  void to_starting(const std::string& replica) {
    wish(Wish::Start, replica);
    verify(replica);
  }
  void to_loading(const std::string& replica) {
    to_starting(replica);
    report_all(replica, StageFact::Loading);
  }
  void to_proving(const std::string& replica) {
    to_loading(replica);
    report_all(replica, StageFact::Ready);
  }
  void to_serving(const std::string& replica) {
    to_proving(replica);
    probe(replica);
  }
  void release_all(const std::string& replica) { report_all(replica, StageFact::Absent); }
  // From a failure to serving again, through the automatic restart.
  void recover(const std::string& replica) {
    release_all(replica);
    pass(plan.restart.backoff);
    verify(replica);
    report_all(replica, StageFact::Ready);
    probe(replica);
  }
  // The next leader's process, with what the one before wrote down.
  Rig successor() const {
    Rig next(plan);
    next.now = now + 1s;
    std::vector<StoredReplica> replicas;
    for (const auto& [name, replica] : stored)
      replicas.push_back(replica);
    next.stored = stored;
    next.lead(stored_term, std::move(replicas));
    return next;
  }

  ReplicaView view(const std::string& replica) const {
    for (ReplicaView& v : cluster.replicas())
      if (v.name == replica) return v;
    return {};
  }
  Phase phase(const std::string& replica) const { return view(replica).phase; }

  template <class T>
  std::vector<T> got() const {
    return of<T>(last);
  }
  template <class T>
  static std::vector<T> of(const std::vector<Action>& actions) {
    std::vector<T> found;
    for (const Action& action : actions)
      if (const T* one = std::get_if<T>(&action)) found.push_back(*one);
    return found;
  }
  std::optional<FinishCommand> finished(std::uint64_t command) const {
    std::optional<FinishCommand> found;
    for (const FinishCommand& f : of<FinishCommand>(all))
      if (f.command == command) found = f;
    return found;
  }
  std::vector<std::string> routed() const {
    std::vector<std::string> names;
    for (const RouteEntry& e : route)
      names.push_back(e.replica + (e.draining ? " draining" : ""));
    return names;
  }

  ClusterPlan plan;
  Cluster cluster;
  Instant now{1h};
  std::vector<Action> last;  // of the last step
  std::vector<Action> all;
  std::map<std::string, std::uint64_t> verify_requests;
  std::map<std::string, std::uint64_t> probe_requests;
  std::map<std::string, bool> connected;
  std::map<std::string, StoredReplica> stored;
  Term stored_term;
  std::uint64_t commands = 0;
  std::vector<RouteEntry> route;
};

inline bool has(const std::vector<Finding>& findings, Code code) {
  for (const Finding& f : findings)
    if (f.code == code) return true;
  return false;
}

template <class T>
std::size_t first_index(const std::vector<Action>& actions) {
  for (std::size_t i = 0; i < actions.size(); ++i)
    if (std::holds_alternative<T>(actions[i])) return i;
  return actions.size();
}

using Names = std::vector<std::string>;

}  // namespace troika::policies::test
