// Between the messages of agents and the events and actions of policies/lifecycle. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/cluster.hpp"
#include "policies/lifecycle.hpp"
#include "policies/proof.hpp"
#include "protocol/messages.hpp"

namespace troika::daemon {

policies::ClusterPlan cluster_plan(const config::ClusterConfig& config);
protocol::EnginePlan engine_plan(const config::ClusterConfig& config, const config::ReplicaConfig& replica);
policies::EngineSettings settings(const protocol::EnginePlan& plan);
policies::ProbeFacts probe_facts(const protocol::ProbeDone& done);

policies::StageFact stage_fact(protocol::StageState state);
policies::ReportedStage reported_stage(const protocol::StageReport& report);
policies::AgentConnected agent_connected(const protocol::Hello& hello);
policies::Wish wish(protocol::Verb verb);
policies::NodeCopies copies_of(const std::string& node, const protocol::VerifyDone& proof);

// The node that runs a rank of a replica; empty: the configuration has none such.
std::string_view node_of(const config::ClusterConfig& config, const StageId& stage);
const config::ReplicaConfig* replica_named(const config::ClusterConfig& config, std::string_view name);

// What an agent's refusal of a message about `subject` means for whoever waits for the answer.
Finding refusal_finding(Code code, const std::string& node, const std::string& subject,
                        const protocol::Refusal& refusal);

// relay_address: of a node, empty where it is not known (such an entry is left out). Entries that drain are
// named by `draining` alone: no new request may go there.
protocol::Route route_message(Term term, std::uint64_t generation, const policies::SetRoute& set,
                              const config::ClusterConfig& config,
                              const std::function<std::string(const std::string& node)>& relay_address);

// One line for an operator who waits: "a: verifying, 30/46 files on spark-1".
struct NodeProgress {
  std::string node;
  std::uint32_t files_done = 0;
  std::uint32_t files_total = 0;
};
std::string progress_text(const policies::ReplicaView& view, const std::vector<NodeProgress>& verifying,
                          const std::vector<protocol::StageReport>& stages);

}  // namespace troika::daemon
