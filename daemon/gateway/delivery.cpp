#include "daemon/gateway/delivery.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "daemon/gateway/event_splitter.hpp"
#include "platform/clock.hpp"
#include "policies/stream.hpp"

namespace troika::daemon::gateway {
namespace {

constexpr std::string_view kPing = ": ping\n\n";
constexpr std::size_t kMostHeld = 64u << 10;  // of events before the first token

// The engine's own refusals; every other answer from 500 on is its failure (mode 79).
bool is_failure(std::uint32_t status) {
  return status >= 500 && status != 503;
}

Delivery failed(Trouble trouble, Code code, std::string reason) {
  Delivery delivery;
  delivery.end = End::Failed;
  delivery.trouble = trouble;
  delivery.code = code;
  delivery.reason = std::move(reason);
  return delivery;
}

std::string cut_reason(const Over& over) {
  return over.error.empty() ? "the engine's answer ended early" : over.error;
}

// An event that is not only a comment.
bool has_data(std::string_view event) {
  constexpr std::string_view kField = "data:";
  for (std::size_t at = 0; at != std::string_view::npos && at < event.size();) {
    if (event.substr(at, kField.size()) == kField) return true;
    at = event.find_first_of("\r\n", at);
    if (at != std::string_view::npos) ++at;
  }
  return false;
}

std::string seconds_text(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

Tokens usage_of(const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) return Tokens{};
  const auto usage = json.find("usage");
  if (usage == json.end() || !usage->is_object()) return Tokens{};
  const auto count = usage->find("completion_tokens");
  return count != usage->end() && count->is_number_unsigned() ? Tokens{count->get<std::uint64_t>()}
                                                              : Tokens{};
}

// A stream of events on its way: whole events only, pings between them, an error event where it fails.
class StreamDelivery {
 public:
  StreamDelivery(Exchange& exchange, std::shared_ptr<Upstream> upstream, std::string request,
                 DeliveryLimits limits, std::uint32_t status, std::string content_type, Instant asked)
      : exchange_(exchange),
        upstream_(std::move(upstream)),
        request_(std::move(request)),
        limits_(limits),
        status_(status),
        content_type_(std::move(content_type)),
        asked_(asked) {}

  asio::awaitable<Delivery> run() {
    progress_ = asked_;
    ping_from_ = platform::now();
    while (true) {
      const auto part = co_await upstream_->next(next_wait());
      if (exchange_.gone()) co_return end(End::ClientGone);
      if (!part) {
        if (stuck()) co_return co_await stalled();
        const bool pinged = co_await ping();
        if (!pinged) co_return end(End::ClientGone);
        continue;
      }
      if (const auto* over = std::get_if<Over>(&*part)) co_return co_await ended(*over);
      const auto* chunk = std::get_if<Chunk>(&*part);
      if (chunk == nullptr) co_return co_await broken(Trouble::UpstreamTruncated, "a second head came");
      splitter_.feed(chunk->bytes);
      const bool passed = co_await pass_events();
      if (!passed) co_return end(End::ClientGone);
      if (engine_error_) co_return co_await engine_error();
      if (splitter_.overflowed())
        co_return co_await broken(Trouble::UpstreamTruncated, "an event is larger than 1 MiB");
      if (false_done_)
        co_return co_await broken(Trouble::UpstreamTruncated,
                                  "the engine ended its answer without a finish_reason");
      if (stuck()) co_return co_await stalled();  // what came were comments
    }
  }

 private:
  Duration progress_limit() const {
    if (reader_.done()) return limits_.after_done;
    return data_ ? limits_.stall : limits_.first_token;
  }
  bool stuck() const { return platform::now() - progress_ >= progress_limit(); }
  Duration next_wait() const {
    const auto now = platform::now();
    const auto wait = std::min(progress_ + progress_limit(), ping_from_ + limits_.ping) - now;
    return std::max<Duration>(wait, std::chrono::milliseconds{1});
  }

  Delivery end(End how) const {
    Delivery delivery;
    delivery.end = how;
    delivery.started = started_;
    delivery.completion = reader_.completion_tokens();
    delivery.first_byte_after = first_byte_after_;
    return delivery;
  }

  // False: the client is gone. The headers wait for the first event or ping: until then it can be replayed.
  asio::awaitable<bool> send(std::string bytes) {
    if (bytes.empty()) co_return true;
    if (!started_) {
      started_ = true;
      const auto begun = co_await exchange_.begin_stream(status_, content_type_);
      if (!begun.ok()) co_return false;
    }
    ping_from_ = platform::now();
    const auto written = co_await exchange_.piece(std::move(bytes));
    co_return written.ok();
  }

  asio::awaitable<bool> ping() {
    if (platform::now() - ping_from_ < limits_.ping) co_return true;
    co_return co_await send(std::string(kPing));
  }

  void took_token() {
    progress_ = platform::now();
    if (std::exchange(data_, true)) return;
    first_byte_after_ = progress_ - asked_;
  }

  asio::awaitable<bool> pass_events() {
    std::string out;
    for (std::string event = splitter_.next(); !event.empty(); event = splitter_.next()) {
      reader_.feed(event);
      if (reader_.verdict_at_end() == policies::StreamVerdict::EngineError) {
        engine_error_ = true;
        error_text_ = std::move(event);
        break;
      }
      // [DONE] of an answer that never finished is not passed on as if it were whole (mode 81).
      if (reader_.done() && !reader_.finished()) {
        false_done_ = true;
        break;
      }
      // A role without text is written before the prompt is read: it is no token.
      if (reader_.text_chunks() > text_chunks_ || reader_.finished()) took_token();
      text_chunks_ = reader_.text_chunks();
      // What comes before the first token would take the replay away; our own pings keep the client. Comments
      // are not kept at all.
      if (data_ || has_data(event)) held_ += event;
      if (data_ || held_.size() > kMostHeld) out += std::exchange(held_, {});
    }
    co_return co_await send(std::move(out));
  }

  asio::awaitable<Delivery> ended(Over over) {
    std::string rest = splitter_.take_rest();
    reader_.feed(rest);
    switch (reader_.verdict_at_end()) {
      case policies::StreamVerdict::Complete:
      case policies::StreamVerdict::CompleteNoDone:
        co_return co_await complete(std::move(rest));
      case policies::StreamVerdict::EngineError:
        error_text_ = std::move(rest);
        co_return co_await engine_error();
      case policies::StreamVerdict::Truncated:
        break;
    }
    co_return co_await broken(Trouble::UpstreamTruncated, cut_reason(over));
  }

  asio::awaitable<Delivery> complete(std::string rest) {
    rest.insert(0, std::exchange(held_, {}));
    if (!rest.empty() && rest.back() != '\n') rest += '\n';
    if (!rest.empty()) rest += '\n';
    const bool sent = co_await send(std::move(rest));
    if (!sent) co_return end(End::ClientGone);
    const auto ended_well = co_await exchange_.end_stream(false);
    if (!ended_well.ok()) co_return end(End::ClientGone);
    auto delivery = end(End::Delivered);
    delivery.code = reader_.done() ? Code::COMPLETE : Code::COMPLETE_NO_DONE;
    co_return delivery;
  }

  asio::awaitable<Delivery> stalled() {
    upstream_->cancel();
    // All that belongs to the answer was there; only the engine's side stayed open.
    if (reader_.finished()) co_return co_await complete({});
    const auto limit = seconds_text(progress_limit());
    if (!data_)
      co_return co_await broken(Trouble::UpstreamTimeout, "the engine wrote no token within " + limit);
    co_return co_await broken(Trouble::UpstreamStalled, "the engine wrote no further token for " + limit);
  }

  asio::awaitable<Delivery> engine_error() {
    upstream_->cancel();
    auto delivery = failed(Trouble::UpstreamFailed, Code::TRUNCATED_BY_ENGINE,
                           "the engine reported an error in its stream");
    // The engine's own error event tells the client more than ours could.
    if (started_) co_await finish(std::move(error_text_));
    co_return about(std::move(delivery));
  }

  asio::awaitable<Delivery> broken(Trouble trouble, std::string reason) {
    upstream_->cancel();
    const bool silent = trouble == Trouble::UpstreamStalled || trouble == Trouble::UpstreamTimeout;
    const Code code = silent ? Code::STALLED : Code::TRUNCATED;
    if (!started_) {
      trouble = silent ? Trouble::UpstreamTimeout : Trouble::UpstreamFailed;
      co_return about(failed(trouble, code, std::move(reason)));
    }
    co_await finish(error_event(trouble, reason + " (request " + request_ + ")"));
    co_return about(failed(trouble, code, std::move(reason)));
  }

  asio::awaitable<void> finish(std::string event) {
    const bool sent = co_await send(std::move(event));
    if (!sent) co_return;
    const auto ended_well = co_await exchange_.end_stream(true);
    (void)ended_well;  // a client that is gone needs no end
  }

  Delivery about(Delivery delivery) const {
    delivery.started = started_;
    delivery.completion = reader_.completion_tokens();
    delivery.first_byte_after = first_byte_after_;
    return delivery;
  }

  Exchange& exchange_;
  std::shared_ptr<Upstream> upstream_;
  std::string request_;
  DeliveryLimits limits_;
  std::uint32_t status_;
  std::string content_type_;
  Instant asked_;
  Instant progress_;   // the engine's last token, or when it was asked
  Instant ping_from_;  // our last byte to the client, or the begin
  EventSplitter splitter_;
  policies::StreamReader reader_;
  std::string error_text_;
  Duration first_byte_after_{-1};
  bool started_ = false;
  bool data_ = false;              // a token was read
  std::uint64_t text_chunks_ = 0;  // read so far
  std::string held_;               // events before the first token
  bool engine_error_ = false;
  bool false_done_ = false;
};

// An answer in one piece: it is passed on whole or not at all.
asio::awaitable<Delivery> deliver_whole(Exchange& exchange, std::shared_ptr<Upstream> upstream,
                                        protocol::RelayHead head, DeliveryLimits limits, Instant asked,
                                        Instant until) {
  std::string body;
  while (true) {
    const Duration wait = std::min(limits.stall, until - platform::now());
    auto part = co_await upstream->next(std::max(wait, Duration::zero()));
    Delivery gone;
    gone.end = End::ClientGone;
    if (exchange.gone()) co_return gone;
    if (!part) {
      upstream->cancel();
      co_return failed(Trouble::UpstreamTimeout, Code::STALLED, "the engine did not end its answer in time");
    }
    if (auto* chunk = std::get_if<Chunk>(&*part)) {
      body += chunk->bytes;
      if (body.size() <= limits.whole_bytes) continue;
      upstream->cancel();
      co_return failed(Trouble::UpstreamFailed, Code::TRUNCATED,
                       "the engine's answer is larger than any can be");
    }
    const auto* over = std::get_if<Over>(&*part);
    if (over == nullptr || !over->complete)
      co_return failed(Trouble::UpstreamFailed, Code::TRUNCATED,
                       over != nullptr ? cut_reason(*over) : "a second head came");
    break;
  }
  if (is_failure(head.status))
    co_return failed(Trouble::UpstreamFailed, Code::TRUNCATED_BY_ENGINE,
                     "the engine answered with status " + std::to_string(head.status));
  Delivery delivery;
  delivery.end = head.status < 400 ? End::Delivered : End::Refused;
  delivery.code = Code::COMPLETE;
  delivery.started = true;
  delivery.completion = usage_of(body);
  delivery.first_byte_after = platform::now() - asked;
  HttpAnswer answer;
  answer.status = head.status;
  answer.content_type = head.content_type.empty() ? "application/json" : head.content_type;
  answer.body = std::move(body);
  // The engine's queue is full: how long is unknown, and asking at once is no use (mode 79).
  if (head.status == 429 || head.status == 503) answer.headers.emplace_back("Retry-After", "10");
  const auto told = co_await exchange.answer(std::move(answer));
  if (!told.ok()) delivery.end = End::ClientGone;
  co_return delivery;
}

bool header_safe(const std::string& value) {
  return std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c != '\x7f'; });
}

}  // namespace

Duration DeliveryLimits::whole_answer(Tokens output) const {
  const auto most = static_cast<std::uint64_t>(whole / each_token);
  if (output.count >= most) return whole;
  return std::min<Duration>(whole, first_token + each_token * static_cast<std::int64_t>(output.count));
}

asio::awaitable<Delivery> deliver(Exchange& exchange, std::shared_ptr<Upstream> upstream, Awaited what,
                                  DeliveryLimits limits) {
  const Instant asked = platform::now();
  const Duration whole = limits.whole_answer(what.output);
  const Duration head_limit = what.stream ? limits.first_token : whole;
  auto part = co_await upstream->next(head_limit);
  if (exchange.gone()) {
    Delivery gone;
    gone.end = End::ClientGone;
    co_return gone;
  }
  if (!part) {
    upstream->cancel();
    co_return failed(Trouble::UpstreamTimeout, Code::STALLED,
                     "the engine did not answer within " + seconds_text(head_limit));
  }
  if (const auto* over = std::get_if<Over>(&*part))
    co_return failed(Trouble::UpstreamFailed, Code::TRUNCATED, cut_reason(*over));
  auto* head = std::get_if<protocol::RelayHead>(&*part);
  if (head == nullptr || head->status < 200 || head->status > 599 || !header_safe(head->content_type)) {
    upstream->cancel();
    co_return failed(Trouble::UpstreamFailed, Code::TRUNCATED, "the engine's answer has no proper head");
  }
  const bool events = head->content_type.rfind("text/event-stream", 0) == 0;
  if (!what.stream || head->status != 200 || !events)
    co_return co_await deliver_whole(exchange, std::move(upstream), std::move(*head), limits, asked,
                                     asked + whole);
  StreamDelivery delivery(exchange, std::move(upstream), std::move(what.request), limits, head->status,
                          std::move(head->content_type), asked);
  co_return co_await delivery.run();
}

}  // namespace troika::daemon::gateway
