#include "cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/codec.hpp"

namespace troika::cli {
namespace {

using protocol::Incident;
using protocol::NodeStatus;
using protocol::ReplicaStatus;
using protocol::StatusReply;

void add(std::vector<Finding>& all, const std::vector<Finding>& more) {
  for (const Finding& one : more)
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

void judge(const ReplicaStatus& replica, std::vector<Finding>& all) {
  add(all, replica.findings);
  if (replica.desired != "running" || replica.phase == "serving") return;
  if (replica.phase == "failed" || replica.phase == "stopped") {
    if (verdict_of(replica.findings) != Verdict::Error)
      add(all, {finding(Code::REPLICA_FAILED, "", replica.replica,
                        fmt::format("replica {} shall run and is {}{}{}", replica.replica, replica.phase,
                                    replica.reason.empty() ? "" : ": ", replica.reason),
                        "look at `troika incidents`, mend the cause, then `troika start " + replica.replica +
                            "`")});
    return;
  }
  Finding under_way = finding(Code::NOT_READY, "", replica.replica,
                              fmt::format("replica {} is {} for {:.0f} s (epoch {})", replica.replica,
                                          replica.phase, replica.phase_seconds, replica.epoch.count),
                              "wait, or watch it with `troika status --watch`");
  under_way.severity = Severity::Warning;
  add(all, {under_way});
}

void judge(const NodeStatus& node, std::vector<Finding>& all) {
  if (node.connected) return add(all, node.facts.findings);
  const std::string heard = node.heartbeat_age_seconds < 0
                                ? "was never heard"
                                : fmt::format("was last heard {:.0f} s ago", node.heartbeat_age_seconds);
  add(all,
      {finding(Code::CANNOT_TELL, node.node, "node", "node " + node.node + " is not connected and " + heard,
               "look at troika-agent on " + node.node + ": systemctl status troika-agent")});
}

}  // namespace

std::vector<Finding> findings_of(const StatusReply& status) {
  std::vector<Finding> all;
  for (const ReplicaStatus& replica : status.replicas)
    judge(replica, all);
  for (const NodeStatus& node : status.nodes)
    judge(node, all);
  if (!status.gateway.connected)
    add(all, {finding(Code::CANNOT_TELL, "", "gateway", "the gateway is not connected to the leader",
                      "look at the leader's log: it starts its gateway again by itself")});
  for (const Incident& incident : status.open_incidents)
    add(all, incident.findings);
  return all;
}

std::vector<Finding> findings_of(const std::vector<Incident>& incidents) {
  std::vector<Finding> all;
  for (const Incident& incident : incidents)
    if (incident.closed.empty()) add(all, incident.findings);
  return all;
}

Finding trouble(const Error& error, Exit status, std::string remedy) {
  Code code = Code::CANNOT_TELL;
  switch (status) {
    case kWrong:
      code = Code::REFUSED;
      break;
    case kUsage:
      code = Code::CONFIG_INVALID;
      break;
    case kGood:
    case kUnreachable:
    case kCannotTell:
      break;
  }
  return finding(code, "", error.subject, error.message(), std::move(remedy));
}

nlohmann::json report(const std::vector<Finding>& findings, const nlohmann::json& own) {
  nlohmann::json out{{"format", 1}, {"verdict", name(verdict_of(findings))}};
  out["findings"] = nlohmann::json::array();
  for (const Finding& one : findings)
    out["findings"].push_back(protocol::to_json(one));
  if (own.is_object()) out.update(own);
  return out;
}

std::string document(const nlohmann::json& report) {
  return report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace troika::cli
