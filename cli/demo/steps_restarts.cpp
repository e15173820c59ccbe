#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "cli/demo/demo.hpp"
#include "platform/clock.hpp"

namespace troika::demo {
namespace {

using local::StreamOutcome;

// A stream shall outlast what is done meanwhile by far: so many seconds at the measured speed.
constexpr double kOutlast_s = 6;
constexpr std::uint32_t kMostTokens = 4000;

std::uint32_t tokens_for(const Demo& demo) {
  return static_cast<std::uint32_t>(std::clamp(demo.tokens_per_s * kOutlast_s, 64.0, double{kMostTokens}));
}

// The finding of the stage's end: with the signal that the demo sent.
bool tells_signal(const protocol::Incident& incident, const std::string& stage, int signal) {
  for (const Finding& one : incident.findings) {
    if (one.code != Code::STAGE_DIED || one.subject != stage) continue;
    for (const auto& [key, value] : one.evidence)
      if (key == "signal" && value == EvidenceValue{std::int64_t{signal}}) return true;
  }
  return false;
}

Result<protocol::Incident> incident_of(const local::LocalCluster& cluster, const std::string& stage,
                                       int signal) {
  protocol::Incident found;
  const Status seen = cluster.wait_until(
      fmt::format("an incident tells that {} ended by signal {}", stage, signal),
      [&] {
        const auto answer = cluster.incidents();
        if (!answer.ok()) return false;
        for (const auto& one : answer.reply->incidents)
          if (tells_signal(one, stage, signal)) found = one;
        return found.id != 0;
      },
      kShortLimit);
  if (!seen.ok()) return seen.error();
  return found;
}

}  // namespace

Status show_killed_leader(Demo& demo) {
  Story& story = demo.story;
  story.step("The leader is killed during a stream, and started again");
  TROIKA_TRY(before, demo.cluster.wait_for("both replicas serve", all_serve, kStartLimit));
  const auto stages = running_stages(before);
  TROIKA_TRY(stream, stream_when_allowed(demo, "Go on while nobody leads.", tokens_for(demo)));
  const Instant killed = platform::now();
  TROIKA_CHECK(demo.cluster.kill_and_wait(demo.cluster.leader(), SIGKILL));
  story.tell(
      fmt::format("the leader (pid {}) was killed after {} tokens", before.leader_pid, stream->pieces()));
  TROIKA_CHECK(demo.cluster.start_leader());
  TROIKA_TRY(after, demo.cluster.wait_for(
                        "a new leader knows both replicas serving",
                        [&](const auto& s) {
                          return s.leader_pid != before.leader_pid && all_serve(s) && all_connected(s) &&
                                 s.gateway.connected;
                        },
                        kStartLimit));
  const double back_s = platform::seconds_since(killed);
  const bool still_running = stream->running();
  if (running_stages(after) != stages) return unseen("the same processes and epochs as before", "others");
  if (after.gateway.pid != before.gateway.pid)
    return unseen(fmt::format("the gateway with pid {}", before.gateway.pid),
                  std::to_string(after.gateway.pid));
  story.seen(
      fmt::format("leader pid {}, term {} after {}: {:.1f} s after the kill it knows all again; six stages "
                  "with the same pid and epoch, the same gateway",
                  after.leader_pid, after.term.count, before.term.count, back_s));
  const StreamOutcome outcome = stream->join();
  remember(demo, outcome);
  if (!outcome.whole()) return unseen("a stream that does not notice", described(outcome));
  story.seen(fmt::format("the stream did not notice: {} tokens, [DONE]{}", outcome.answer.tokens(),
                         still_running ? "; it ran on past the new leader's first word" : ""));
  story.facts["killed_leader"] = {{"back_s", back_s},
                                  {"term_before", before.term.count},
                                  {"term_after", after.term.count},
                                  {"stream_tokens", outcome.answer.tokens()},
                                  {"stream_outlasted_restart", still_running},
                                  {"same_stage_processes", true}};
  return Done{};
}

Status show_killed_agent(Demo& demo) {
  Story& story = demo.story;
  story.step(
      "An agent is killed and started again: it adopts its stage, and reports that stage's later end truly");
  TROIKA_TRY(before, demo.cluster.wait_for("both replicas serve", all_serve, kStartLimit));
  const std::string standby = other(before, routed(before));
  const auto* const orphan = stage(before, standby + "/1");
  const auto pid = static_cast<pid_t>(orphan->pid);
  const pid_t agent = demo.cluster.agent(orphan->node);
  const Instant killed = platform::now();
  TROIKA_CHECK(demo.cluster.kill_and_wait(agent, SIGKILL));
  if (!local::alive(pid)) return unseen("a stage that outlives its agent", "it ended with it");
  TROIKA_CHECK(demo.cluster.wait_for(
      "the leader misses the agent", [&](const auto& s) { return !all_connected(s); }, kShortLimit));
  TROIKA_CHECK(demo.cluster.start_agent(orphan->node));
  TROIKA_TRY(adopted, demo.cluster.wait_for(
                          "the new agent has adopted the stage",
                          [&](const auto& s) { return all_connected(s) && all_serve(s); }, kShortLimit));
  const double adopted_s = platform::seconds_since(killed);
  if (running_stages(adopted) != running_stages(before))
    return unseen("the same processes and epochs as before", "others");
  story.seen(fmt::format(
      "agent of {}: pid {} after {}; {} still has pid {} and epoch {}, {:.1f} s after the kill", orphan->node,
      demo.cluster.agent(orphan->node), agent, orphan->stage, pid, orphan->epoch.count, adopted_s));
  const Epoch epoch = replica(before, standby)->epoch;
  const Instant stage_killed = platform::now();
  TROIKA_CHECK(demo.cluster.kill_and_wait(pid, SIGUSR2));
  TROIKA_TRY(incident, incident_of(demo.cluster, orphan->stage, SIGUSR2));
  story.seen(fmt::format("{} gets signal {} (SIGUSR2): incident {} tells that it ended by signal {}",
                         orphan->stage, SIGUSR2, incident.id, SIGUSR2));
  TROIKA_TRY(after,
             demo.cluster.wait_for(
                 "the replica serves again",
                 [&](const auto& s) { return serves(s, standby) && replica(s, standby)->epoch > epoch; },
                 kStartLimit));
  story.seen(fmt::format("replica {} was restarted: epoch {} after {}, {:.1f} s later", standby,
                         replica(after, standby)->epoch.count, epoch.count,
                         platform::seconds_since(stage_killed)));
  story.facts["killed_agent"] = {
      {"node", orphan->node},   {"stage", orphan->stage},
      {"adopted_s", adopted_s}, {"same_stage_process", true},
      {"told_signal", SIGUSR2}, {"recovery_s", platform::seconds_since(stage_killed)}};
  return Done{};
}

}  // namespace troika::demo
