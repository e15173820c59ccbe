#include <fmt/format.h>

#include "cli/demo/demo.hpp"
#include "cli/render.hpp"
#include "platform/clock.hpp"

namespace troika::demo {
namespace {

constexpr std::uint32_t kShards = 46;

std::uint32_t shards_proven(const protocol::StatusReply& status) {
  std::uint32_t sum = 0;
  for (const auto& one : status.replicas)
    sum += one.shards_proven;
  return sum;
}

std::string links_text(const protocol::NodeStatus& node) {
  std::string out;
  for (const auto& link : node.facts.links)
    out += fmt::format("{}{} {}{}", out.empty() ? "" : ", ", link.netdev, link.state,
                       link.rdma ? "" : ", no RDMA device");
  return out.empty() ? "no links told" : out;
}

// Each stage's process, seen in /proc by itself: the leader's word is not taken for it.
Status check_processes(Demo& demo, const protocol::StatusReply& status) {
  for (const auto& replica : status.replicas) {
    std::string ranks;
    for (const auto& rank : replica.stages) {
      const auto pid = static_cast<pid_t>(rank.pid);
      if (!local::alive(pid))
        return unseen("a process for stage " + rank.stage, fmt::format("none with number {}", pid));
      ranks += fmt::format(", {} on {} pid {} layers {}-{}", rank.stage, rank.node, rank.pid,
                           rank.layers.begin, rank.layers.end - 1);
    }
    demo.story.seen(
        fmt::format("replica {} serves, epoch {}{}", replica.replica, replica.epoch.count, ranks));
  }
  return Done{};
}

}  // namespace

Error unseen(std::string what, std::string instead) {
  return Error{"see", std::move(what), "instead: " + std::move(instead)};
}

Status good(const cli::Answer<protocol::CommandDone>& answer, const std::string& what) {
  if (!answer.ok()) return answer.error;
  if (answer.reply->verdict == Verdict::Ok || answer.reply->verdict == Verdict::Warning) return Done{};
  std::string findings;
  for (const Finding& one : answer.reply->findings)
    findings += " " + cli::render_finding(one, {});
  return unseen(what, answer.reply->text + findings);
}

Status show_model(Demo& demo) {
  const local::ModelFacts& model = demo.cluster.model();
  const double megabytes = static_cast<double>(model.made.bytes) / 1e6;
  demo.story.seen(fmt::format("{} layers in {} shards, {:.1f} MB in {} files, written in {:.1f} s",
                              local::layers_of(demo.cluster.shape()), kShards, megabytes, model.made.files,
                              model.make_seconds));
  demo.story.seen(fmt::format("{} copies, one a node: {} files, {} of them by reflink", model.copies,
                              model.copied.files, model.copied.reflinked));
  demo.story.facts["model"] = {{"layers", local::layers_of(demo.cluster.shape())},
                               {"shards", kShards},
                               {"files", model.made.files},
                               {"bytes", model.made.bytes},
                               {"make_s", model.make_seconds},
                               {"copies", model.copies},
                               {"reflinked_files", model.copied.reflinked}};
  return Done{};
}

Status show_start(Demo& demo) {
  Story& story = demo.story;
  story.step("Leader, gateway and six agents are started");
  Instant began = platform::now();
  TROIKA_CHECK(demo.cluster.start());
  TROIKA_TRY(
      connected,
      demo.cluster.wait_for(
          "every agent and the gateway are connected",
          [](const auto& status) { return all_connected(status) && status.gateway.connected; }, kShortLimit));
  const double connect_s = platform::seconds_since(began);
  story.seen(fmt::format("leader pid {} (term {}), gateway pid {}, {} agents, connected after {:.1f} s",
                         connected.leader_pid, connected.term.count, connected.gateway.pid,
                         connected.nodes.size(), connect_s));
  const auto& node = connected.nodes.front();
  story.seen(fmt::format("{} tells {} of memory available; links: {}", node.node,
                         cli::bytes_text(node.facts.memory_available), links_text(node)));

  story.step("Every node proves its own copy, then both replicas start: three ranks each");
  began = platform::now();
  TROIKA_CHECK(good(demo.cluster.command(protocol::Verb::Start, ""), "both replicas started"));
  const double start_s = platform::seconds_since(began);
  TROIKA_TRY(serving, demo.cluster.wait_for(
                          "both replicas serve",
                          [](const auto& status) { return all_serve(status) && !routed(status).empty(); },
                          kStartLimit));
  const auto nodes = static_cast<std::uint32_t>(serving.nodes.size());
  const std::uint32_t proven = shards_proven(serving);
  if (proven != nodes * kShards)
    return unseen(fmt::format("{} x {} shards proven", nodes, kShards), std::to_string(proven));
  story.seen(
      fmt::format("{} x {} = {} shards proven by SHA-256 against the manifest", nodes, kShards, proven));
  TROIKA_CHECK(check_processes(demo, serving));
  story.seen(
      fmt::format("started, loaded and proven by a real completion in {:.1f} s; the next request goes to {}",
                  start_s, routed(serving)));
  story.facts["start"] = {
      {"connect_s", connect_s},
      {"start_s", start_s},
      {"shards_proven", proven},
      {"nodes", nodes},
      {"epochs", {{"a", replica(serving, "a")->epoch.count}, {"b", replica(serving, "b")->epoch.count}}}};
  return Done{};
}

}  // namespace troika::demo
