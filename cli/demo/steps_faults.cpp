#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <optional>

#include "cli/demo/demo.hpp"
#include "platform/clock.hpp"

namespace troika::demo {
namespace {

using local::StreamOutcome;

constexpr std::uint32_t kManyTokens = 4000;  // more than are made before the fault ends it

Status check_cut(const StreamOutcome& outcome) {
  if (outcome.answer.error_code() == "upstream_truncated" && !outcome.answer.done()) return Done{};
  return unseen("a stream that ends with the error event upstream_truncated and without [DONE]",
                described(outcome));
}

// The request that the client sends again is answered by `name`: its own counter says so.
Status check_takes_over(Demo& demo, const std::string& name, const std::function<void()>& meanwhile) {
  TROIKA_TRY(before, stage_counter(demo.cluster, name, "troika_stage_requests_total"));
  TROIKA_TRY(stream, stream_when_allowed(demo, "Who answers now?", 24, meanwhile));
  const StreamOutcome outcome = stream->join();
  remember(demo, outcome);
  if (!outcome.whole()) return unseen("a whole answer of replica " + name, described(outcome));
  TROIKA_TRY(after, stage_counter(demo.cluster, name, "troika_stage_requests_total"));
  if (after <= before)
    return unseen("a request counted by replica " + name, fmt::format("{} before and after", before));
  demo.story.seen(fmt::format(
      "the next request is answered by replica {}: {} tokens, [DONE]; its stage counts {:.0f} request more",
      name, outcome.answer.tokens(), after - before));
  return Done{};
}

const Finding* find(const std::vector<Finding>& findings, Code code) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
  return found == findings.end() ? nullptr : &*found;
}

}  // namespace

Status show_killed_stage(Demo& demo) {
  Story& story = demo.story;
  story.step("A stage is killed (SIGKILL) while a stream runs through it");
  TROIKA_TRY(stream, stream_when_allowed(demo, "Tell a long story.", kManyTokens));
  TROIKA_TRY(before, demo.cluster.wait_for(
                         "a replica serves", [](const auto& s) { return !routed(s).empty(); }, kShortLimit));
  const std::string hurt = routed(before);
  const std::string saviour = other(before, hurt);
  const auto* const middle = stage(before, hurt + "/1");
  if (middle == nullptr || middle->pid == 0)
    return unseen("stage " + hurt + "/1", "the leader knows no process of it");
  const Epoch epoch = replica(before, hurt)->epoch;
  const Instant killed = platform::now();
  TROIKA_CHECK(demo.cluster.kill_and_wait(static_cast<pid_t>(middle->pid), SIGKILL));
  story.tell(fmt::format("{} (pid {}, on {}) was killed after {} tokens", middle->stage, middle->pid,
                         middle->node, stream->pieces()));
  const StreamOutcome outcome = stream->join();
  remember(demo, outcome);
  TROIKA_CHECK(check_cut(outcome));
  story.seen(fmt::format("the stream ends {:.2f} s later, after {} tokens: error event {}, no [DONE]",
                         std::chrono::duration<double>(outcome.ended - killed).count(),
                         outcome.answer.tokens(), outcome.answer.error_code()));
  TROIKA_CHECK(demo.cluster.wait_for(
      "the other replica is the next", [&](const auto& s) { return routed(s) == saviour; }, kShortLimit));
  const double failover_s = platform::seconds_since(killed);
  story.seen(fmt::format("replica {} is next for requests {:.2f} s after the kill", saviour, failover_s));
  std::optional<double> recovery_s;  // seen while the rate makes the next request wait, or after it
  const auto recovered = [&](const protocol::StatusReply& s) {
    const bool back = serves(s, hurt) && replica(s, hurt)->epoch > epoch;
    if (back && !recovery_s) recovery_s = platform::seconds_since(killed);
    return back;
  };
  const auto look = [&] {
    if (recovery_s) return;
    if (const auto now = demo.cluster.status(); now.ok()) (void)recovered(*now.reply);
  };
  TROIKA_CHECK(check_takes_over(demo, saviour, look));
  TROIKA_TRY(after, demo.cluster.wait_for("the hurt replica serves again", recovered, kStartLimit));
  const Epoch now_epoch = replica(after, hurt)->epoch;
  if (now_epoch != next(epoch))
    return unseen("one restart", fmt::format("epoch {} after {}", now_epoch.count, epoch.count));
  story.seen(fmt::format(
      "replica {} was restarted once, whole: epoch {} after {}, proven again, {:.1f} s after the kill", hurt,
      now_epoch.count, epoch.count, *recovery_s));
  story.facts["killed_stage"] = {
      {"stage", middle->stage},
      {"stream_end_s", std::chrono::duration<double>(outcome.ended - killed).count()},
      {"stream_error", outcome.answer.error_code()},
      {"failover_s", failover_s},
      {"recovery_s", *recovery_s},
      {"epoch_before", epoch.count},
      {"epoch_after", now_epoch.count}};
  return Done{};
}

Status show_flipped_byte(Demo& demo) {
  Story& story = demo.story;
  story.step("One byte of one shard of one node's own copy is flipped");
  TROIKA_TRY(before, demo.cluster.wait_for("both replicas serve", all_serve, kStartLimit));
  const std::string standby = other(before, routed(before));
  const std::string node = local::nodes_of(demo.cluster.shape(), standby).back();
  const std::string shard = "model-00031-of-00046.safetensors";
  const std::string path = demo.cluster.layout().node_model(node) + "/" + shard;
  TROIKA_CHECK(good(demo.cluster.command(protocol::Verb::Stop, standby), "replica " + standby + " stopped"));
  TROIKA_TRY(bytes, local::file_size(path));
  TROIKA_CHECK(local::flip_byte(path, bytes.count / 2));
  story.tell(fmt::format("replica {} is stopped; byte {} of {} on {} is inverted", standby, bytes.count / 2,
                         shard, node));
  const Instant asked = platform::now();
  const auto refused = demo.cluster.command(protocol::Verb::Start, standby);
  if (!refused.ok()) return refused.error;
  const Finding* const mismatch = find(refused.reply->findings, Code::HASH_MISMATCH);
  if (refused.reply->verdict != Verdict::Error || mismatch == nullptr || mismatch->node != node ||
      mismatch->subject != shard)
    return unseen("a refused start with HASH_MISMATCH of " + shard + " on " + node, refused.reply->text);
  TROIKA_TRY(status, demo.cluster.wait_for(
                         "an answer", [](const auto&) { return true; }, kShortLimit));
  if (replica(status, standby)->epoch != replica(before, standby)->epoch)
    return unseen("no stage started", fmt::format("epoch {}", replica(status, standby)->epoch.count));
  const double refused_s = platform::seconds_since(asked);
  story.seen(fmt::format("the start is refused after {:.1f} s, no stage was started: {} on {}, {}", refused_s,
                         name(mismatch->code), mismatch->node, mismatch->subject));
  TROIKA_CHECK(local::flip_byte(path, bytes.count / 2));
  TROIKA_CHECK(good(demo.cluster.command(protocol::Verb::Start, standby), "replica " + standby + " started"));
  TROIKA_TRY(after,
             demo.cluster.wait_for(
                 "the replica serves", [&](const auto& s) { return serves(s, standby); }, kStartLimit));
  story.seen(fmt::format("the byte is put back: replica {} is proven and serves, epoch {}", standby,
                         replica(after, standby)->epoch.count));
  story.facts["flipped_byte"] = {{"node", node},
                                 {"file", shard},
                                 {"code", name(mismatch->code)},
                                 {"refused_s", refused_s},
                                 {"epoch_after", replica(after, standby)->epoch.count}};
  return Done{};
}

}  // namespace troika::demo
