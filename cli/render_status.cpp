// The screen of `troika status`. What was not heard is shown as "unknown", never as its last good value.
#include <fmt/format.h>

#include "cli/render.hpp"
#include "cli/table.hpp"

namespace troika::cli {
namespace {

using protocol::GatewayStatus;
using protocol::Incident;
using protocol::LinkFact;
using protocol::NodeStatus;
using protocol::ReplicaStatus;
using protocol::StageStatus;
using protocol::StatusReply;

const Cell kUnknown{"unknown", Tone::Doubtful};

Tone tone_of_phase(const ReplicaStatus& replica) {
  if (replica.phase == "serving") return Tone::Good;
  if (replica.phase == "failed") return Tone::Bad;
  if (replica.phase == "stopped") return replica.desired == "running" ? Tone::Bad : Tone::Faint;
  return Tone::Doubtful;
}

Cell proven(const ReplicaStatus& replica) {
  if (replica.proven) return {"yes", Tone::Good};
  return {replica.breaker_open ? "no, breaker open" : "no", replica.breaker_open ? Tone::Bad : Tone::Plain};
}

std::string replicas(const StatusReply& status, const Style& style) {
  Table table({"REPLICA", "WANTED", "PHASE", "FOR", "EPOCH", "PROVEN", "SHARDS", "NEXT REQUEST", "WHY"});
  for (const ReplicaStatus& one : status.replicas)
    table.row({{shown(one.replica), Tone::Strong},
               {shown(one.desired)},
               {shown(one.phase), tone_of_phase(one)},
               {seconds_text(one.phase_seconds)},
               {one.epoch.count == 0 ? "none" : std::to_string(one.epoch.count)},
               proven(one),
               {std::to_string(one.shards_proven)},
               {one.routed ? "here" : "", Tone::Good},
               {shown(one.reason)}});
  return table.text(style);
}

Cell stage_state(const StageStatus& stage) {
  if (stage.state == "ready") return {"ready", Tone::Good};
  if (stage.state == "stopped" || stage.state == "released") return {shown(stage.state), Tone::Faint};
  if (stage.state == "exited" || stage.state == "not_released") return {shown(stage.state), Tone::Bad};
  return {shown(stage.state), Tone::Doubtful};
}

Cell loaded(const StageStatus& stage) {
  if (stage.state == "unknown") return kUnknown;
  if (stage.progress_total.count == 0) return {stage.progress.count == 0 ? "" : bytes_text(stage.progress)};
  return {share_text(stage.progress, stage.progress_total)};
}

std::string stages(const StatusReply& status, const Style& style) {
  Table table({"STAGE", "NODE", "STATE", "EPOCH", "PID", "LAYERS", "LOADED", "DETAIL"});
  for (const ReplicaStatus& replica : status.replicas)
    for (const StageStatus& one : replica.stages)
      table.row({{shown(one.stage)},
                 {shown(one.node)},
                 stage_state(one),
                 {one.epoch.count == 0 ? "none" : std::to_string(one.epoch.count)},
                 {one.pid == 0 ? "" : std::to_string(one.pid)},
                 {one.layers.size() == 0 ? "" : fmt::format("{}-{}", one.layers.begin, one.layers.end - 1)},
                 loaded(one),
                 {shown(one.detail)}});
  return table.empty() ? "" : table.text(style);
}

Cell pressure(const NodeStatus& node) {
  const double some = node.facts.psi_memory_some;
  if (some < 0) return kUnknown;
  return {fmt::format("{:.1f}%", some), some < 1 ? Tone::Plain : some < 10 ? Tone::Doubtful : Tone::Bad};
}

Cell links(const NodeStatus& node) {
  if (node.facts.links.empty()) return {"none told", Tone::Faint};
  std::string text;
  bool all_up = true;
  for (const LinkFact& link : node.facts.links) {
    text += (text.empty() ? "" : ", ") + shown(link.netdev) + " " + shown(link.state);
    if (link.state == "up" && link.speed_mbps > 0)
      text += fmt::format(" {:g} Gb/s", static_cast<double>(link.speed_mbps) / 1000);
    text += link.rdma ? " RDMA" : " no RDMA";
    all_up = all_up && link.state == "up";
  }
  return {text, all_up ? Tone::Plain : Tone::Bad};
}

std::string doing(const NodeStatus& node) {
  std::string text;
  for (const std::string& one : node.verifying)
    text += (text.empty() ? "" : "; ") + shown(one);
  return text;
}

std::string nodes(const StatusReply& status, const Style& style) {
  Table table({"NODE", "HEARD", "MEMORY FREE", "STALLED", "LINKS", "VERSION", "VERIFYING"});
  for (const NodeStatus& one : status.nodes) {
    if (!one.connected) {
      const std::string heard =
          one.heartbeat_age_seconds < 0 ? "never" : seconds_text(one.heartbeat_age_seconds) + " ago";
      table.row({{shown(one.node)}, {heard, Tone::Bad}, kUnknown, kUnknown, kUnknown, {""}, {""}});
      continue;
    }
    table.row({{shown(one.node)},
               {seconds_text(one.heartbeat_age_seconds) + " ago"},
               one.facts.memory_total.count == 0
                   ? kUnknown
                   : Cell{share_text(one.facts.memory_available, one.facts.memory_total)},
               pressure(one),
               links(one),
               {shown(one.version)},
               {doing(one)}});
  }
  return table.empty() ? "" : table.text(style);
}

std::string gateway(const GatewayStatus& g, const Style& style) {
  if (!g.connected)
    return toned("gateway", Tone::Strong, style) + "  " +
           toned("unknown: not connected to the leader", Tone::Doubtful, style) + "\n";
  std::string next;
  if (g.targets.empty()) {
    next = toned("nowhere" + (g.reason.empty() ? "" : " (" + shown(g.reason) + ")"), Tone::Bad, style);
  } else {
    next = toned(fmt::format("{} (epoch {})", shown(g.targets[0].replica), g.targets[0].epoch.count),
                 Tone::Good, style);
    for (std::size_t i = 1; i < g.targets.size(); ++i)
      next += (i == 1 ? ", then " : ", ") + shown(g.targets[i].replica);
  }
  return fmt::format(
      "{}  http://{}, pid {}\n  next request  {}\n  requests      {} in flight, {} admitted, {} refused, {} "
      "completed, {} failed\n",
      toned("gateway", Tone::Strong, style), shown(g.listen), g.pid, next, g.stats.in_flight,
      g.stats.admitted, g.stats.refused, g.stats.completed, g.stats.failed);
}

std::string incidents(const StatusReply& status, const Style& style) {
  if (status.open_incidents.empty()) return "open incidents  none\n";
  std::string out = toned("open incidents", Tone::Strong, style) + "\n";
  for (const Incident& one : status.open_incidents) {
    out += wrapped(
               fmt::format("{}  {}  {}: {}", one.id, shown(one.opened), shown(one.subject), shown(one.title)),
               "  ", style.width) +
           "\n";
    for (const Finding& finding : one.findings)
      out += render_finding(finding, style);
  }
  return out;
}

// What stopped a replica that is not told by an open incident already.
std::string untold(const StatusReply& status, const Style& style) {
  std::string out;
  for (const ReplicaStatus& replica : status.replicas)
    for (const Finding& finding : replica.findings) {
      bool told = finding.severity == Severity::Info;
      for (const Incident& incident : status.open_incidents)
        for (const Finding& other : incident.findings)
          told = told || other == finding;
      if (!told) out += render_finding(finding, style);
    }
  return out.empty() ? "" : toned("findings", Tone::Strong, style) + "\n" + out;
}

}  // namespace

std::string render_status(const StatusReply& status, const Style& style) {
  std::string out =
      fmt::format("{} {}  leader pid {}, term {}, version {}\n\n", toned("cluster", Tone::Strong, style),
                  shown(status.cluster), status.leader_pid, status.term.count, shown(status.version));
  for (const std::string& block : {replicas(status, style), stages(status, style), nodes(status, style)})
    if (!block.empty()) out += block + "\n";
  out += gateway(status.gateway, style);
  out += incidents(status, style);
  return out + untold(status, style);
}

}  // namespace troika::cli
