#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/demo/demo.hpp"
#include "cli/terminal.hpp"
#include "platform/clock.hpp"

namespace troika::demo {
namespace {

using local::Stream;
using local::StreamOutcome;

constexpr double kRate = 0.10;  // of the demo's configuration: one request in ten seconds
constexpr Duration kBetween = std::chrono::seconds{10};
constexpr std::uint32_t kFirstAnswerTokens = 96;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Until the gateway must let the next request pass; tells how long that is.
Status wait_for_rate(Demo& demo, const std::function<void()>& meanwhile) {
  if (!demo.answered) return Done{};
  const Instant at = *demo.answered + kBetween;
  const double left_s = seconds(at - platform::now());
  if (left_s <= 0) return Done{};
  demo.story.tell(
      fmt::format("the rate is {} requests a second: {:.1f} s until the next may pass", kRate, left_s));
  const auto passed = [&] {
    if (meanwhile) meanwhile();
    return platform::now() >= at;
  };
  return demo.cluster.wait_until("the rate lets the next request pass", passed, kBetween + kShortLimit);
}

// The text's beginning, spaces for its line breaks.
std::string one_line(std::string text) {
  constexpr std::size_t kShown = 160;
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return cli::cut(text, kShown);
}

std::uint32_t whole(const std::string& text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

void remember(Demo& demo, const StreamOutcome& outcome) {
  demo.asked = outcome.asked;
  // The first byte came after it was passed on; without one, the end did.
  demo.answered = outcome.answer.first_at() ? *outcome.answer.first_at() : outcome.ended;
}

Result<std::unique_ptr<Stream>> stream_when_allowed(Demo& demo, const std::string& prompt,
                                                    std::uint32_t max_tokens,
                                                    const std::function<void()>& meanwhile) {
  constexpr std::uint64_t kPieces = 3;  // the answer is under way
  TROIKA_CHECK(wait_for_rate(demo, meanwhile));
  local::HttpRequest request = completion(demo.cluster.shape().model, prompt, max_tokens, true);
  request.stop = [&cluster = demo.cluster] { return cluster.stopped(); };
  auto stream = std::make_unique<Stream>("127.0.0.1", demo.cluster.ports().gateway, std::move(request));
  demo.asked = platform::now();
  TROIKA_CHECK(demo.cluster.wait_until(
      "the answer is under way", [&] { return stream->pieces() >= kPieces || !stream->running(); },
      kShortLimit));
  demo.answered = platform::now();
  if (stream->pieces() < kPieces) return unseen("an answer under way", described(stream->join()));
  return stream;
}

Status show_answer(Demo& demo) {
  demo.story.step("A question is answered as a stream");
  TROIKA_TRY(stream,
             stream_when_allowed(demo, "What do three machines have that one has not?", kFirstAnswerTokens));
  const StreamOutcome outcome = stream->join();
  remember(demo, outcome);
  if (!outcome.whole()) return unseen("a whole answer", described(outcome));
  const Speed speed = speed_of(outcome);
  demo.tokens_per_s = speed.tokens_per_s;
  demo.story.seen(fmt::format(
      "status 200, {} tokens, finish_reason {}, [DONE]; TTFT {:.0f} ms, then {:.1f} tokens/s",
      outcome.answer.tokens(), outcome.answer.finish_reason(), speed.ttft_s * 1e3, speed.tokens_per_s));
  demo.story.seen("text (the weights are random, so is the wisdom): " + one_line(outcome.answer.text()));
  demo.story.facts["answer"] = {{"tokens", outcome.answer.tokens()},
                                {"ttft_s", speed.ttft_s},
                                {"tokens_per_s", speed.tokens_per_s},
                                {"e2e_s", seconds(outcome.ended - outcome.asked)}};
  return Done{};
}

Status show_refusal(Demo& demo) {
  demo.story.step("A second request within ten seconds is refused");
  const Instant asked = platform::now();
  local::HttpRequest request = completion(demo.cluster.shape().model, "And again?", 8, false);
  request.stop = [&cluster = demo.cluster] { return cluster.stopped(); };
  TROIKA_TRY(reply, demo.cluster.ask(request));
  const Instant answered = platform::now();
  const std::string code = local::error_code_of(reply.body);
  const auto header = reply.headers.find("retry-after");
  if (reply.status != 429 || code != "rate_limit_exceeded" || header == reply.headers.end())
    return unseen("429 rate_limit_exceeded with Retry-After",
                  fmt::format("status {}, {}", reply.status, reply.body));
  // The first was passed on between its being asked and its first byte; that gives the right figure to a
  // second or two.
  const std::uint32_t told_s = whole(header->second);
  const auto least_s =
      static_cast<std::uint32_t>(std::max(1.0, std::ceil(10 - seconds(answered - *demo.asked))));
  const auto most_s = static_cast<std::uint32_t>(std::ceil(10 - seconds(asked - *demo.answered)));
  if (told_s < least_s || told_s > most_s)
    return unseen(fmt::format("Retry-After of {} to {} s", least_s, most_s), header->second);
  demo.story.seen(fmt::format("{:.1f} s after the first: status 429, {}, Retry-After {} (right: {} to {})",
                              seconds(asked - *demo.asked), code, told_s, least_s, most_s));
  demo.story.facts["refusal"] = {{"status", reply.status},
                                 {"code", code},
                                 {"retry_after_s", told_s},
                                 {"after_first_s", seconds(asked - *demo.asked)}};
  return Done{};
}

}  // namespace troika::demo
