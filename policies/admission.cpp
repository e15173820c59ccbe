#include "policies/admission.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "policies/line.hpp"
#include "vocabulary/result.hpp"

namespace troika::policies {
namespace {

// Far enough for any rule, and sums of a few of them do not overflow.
constexpr Duration kLongest{std::numeric_limits<Duration::rep>::max() / 16};

Duration interval_of(double rate) {
  TROIKA_INVARIANT(rate > 0 && std::isfinite(rate));
  const double ns = std::ceil(1e9 / rate);
  return ns >= static_cast<double>(kLongest.count()) ? kLongest : Duration{static_cast<Duration::rep>(ns)};
}

Duration times(Duration interval, std::uint32_t count) {
  if (count != 0 && interval > kLongest / count) return kLongest;
  return interval * count;
}

std::uint32_t seconds_rounded_up(Duration wait) {
  if (wait <= Duration::zero()) return 1;  // free by now: ask again, but not in a loop
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(seconds, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

Admission::Admission(AdmissionRule rule)
    : rule_(rule), interval_(interval_of(rule.rate)), tolerance_(times(interval_, rule.burst - 1)) {
  TROIKA_INVARIANT(rule.burst >= 1);
}

void Admission::restore(const std::optional<AdmissionRecord>& last, const std::string& boot_id, Instant now) {
  boot_id_ = boot_id;
  open_.clear();
  waiting_ = 0;
  const Instant empty = now + tolerance_ + interval_;  // as after a whole burst at this instant
  if (!last.has_value())
    settled_ = now;
  else if (last->boot_id.empty() || last->boot_id != boot_id)
    settled_ = empty;
  else
    settled_ = std::min(last->tat, empty);  // the rule may have changed; nothing can be more than empty
}

// As if every admitted request that is not passed on yet were passed on at the latest instant at which it may
// be.
Instant Admission::latest_tat() const {
  Instant tat = settled_;
  for (const Open& o : open_)
    if (!o.passed) tat = std::max(tat, o.pass_by) + interval_;
  return tat;
}

// The worst that can happen to the rate is that all admitted requests that are not passed on yet, and this
// one, are passed on at the same instant. If that is allowed now it is allowed at any later instant, together
// or one by one: what they need, max(settled, t) + (n - 1) * interval - tolerance <= t, stays true as t grows
// and as one of them settles.
bool Admission::rate_allows(Instant now) const {
  const auto unsettled = static_cast<std::uint32_t>(
      std::count_if(open_.begin(), open_.end(), [](const Open& o) { return !o.passed; }));
  return std::max(settled_, now) + times(interval_, unsettled) - tolerance_ <= now;
}

// What no waiting changes.
std::optional<Refused> Admission::refuse_for_good(const RequestSize& size, Tokens kv_capacity) const {
  if (size.prompt > rule_.prompt_cap)
    return Refused{
        RefusalKind::PromptCap, 0,
        line("the prompt has ", size.prompt, " tokens, at most ", rule_.prompt_cap, " are accepted")};
  if (size.prompt > rule_.window || size.max_output > rule_.window - size.prompt)
    return Refused{RefusalKind::Window, 0,
                   line("prompt ", size.prompt, " + output ", size.max_output,
                        " tokens are more than the window of ", rule_.window)};
  if (kv_capacity.count != 0 && size.prompt + size.max_output > kv_capacity)
    return Refused{RefusalKind::KvCapacity, 0,
                   line("prompt ", size.prompt, " + output ", size.max_output, " tokens never fit the ",
                        kv_capacity, " tokens of the KV cache")};
  return std::nullopt;
}

AdmissionAnswer Admission::ask(const RequestSize& size, Tokens kv_capacity, Instant now, bool waited) {
  const bool queued = waited && waiting_ > 0;
  if (const auto refused = refuse_for_good(size, kv_capacity)) {
    if (queued) --waiting_;
    return *refused;
  }
  const std::uint32_t before = queued ? 0 : waiting_;  // requests that stand before this one
  // When a place is free for sure; earlier where what is admitted is passed on sooner than it may be.
  const Instant slot = latest_tat() - tolerance_ + times(interval_, before);
  const Tokens tokens = size.prompt + size.max_output;
  const bool in_flight_full = open_.size() >= rule_.in_flight;
  const bool kv_full = kv_capacity.count != 0 && active_tokens() + tokens > kv_capacity;

  if (before == 0 && !in_flight_full && !kv_full && rate_allows(now)) {
    if (queued) --waiting_;
    Open open;
    open.ticket = next_ticket_++;
    open.tokens = tokens;
    open.pass_by = now + kPassSlack;
    open_.push_back(open);
    return Admitted{open.ticket, open.pass_by};
  }

  const bool for_an_end = in_flight_full || kv_full;
  const Waiting waiting{std::max(slot, now + (for_an_end ? kAskAgain : kPassSlack))};
  if (queued) return waiting;
  const Duration wait = slot - now;
  if (waiting_ < rule_.queue && wait <= rule_.queue_wait) {
    ++waiting_;
    return waiting;
  }
  // When another request ends is not known; a place at the rate is the earliest that makes sense.
  const std::uint32_t retry = seconds_rounded_up(for_an_end ? std::max(wait, interval_) : wait);
  if (in_flight_full)
    return Refused{
        RefusalKind::InFlight, retry,
        line(open_.size(), " requests are in flight, as many as allowed; try again in ", retry, " s")};
  if (kv_full)
    return Refused{RefusalKind::KvCapacity, retry,
                   line(active_tokens(), " of ", kv_capacity, " tokens of the KV cache are taken, ", tokens,
                        " do not fit; try again in ", retry, " s")};
  const std::string queue = rule_.queue == 0 ? std::string() : line(", ", waiting_, " requests wait");
  return Refused{RefusalKind::RateLimit, retry,
                 line("the rate allows no request now", queue, "; try again in ", retry, " s")};
}

AdmissionAnswer Admission::peek(const RequestSize& size, Tokens kv_capacity, Instant now) const {
  Admission copy = *this;
  return copy.ask(size, kv_capacity, now);
}

void Admission::leave_queue() {
  if (waiting_ > 0) --waiting_;
}

// Passing on later is always allowed by the rate (see rate_allows); only what is written down must say so
// first.
std::optional<Instant> Admission::renew(std::uint64_t ticket, Instant now) {
  auto open = take(ticket);
  if (!open.has_value()) return std::nullopt;
  if (!open->passed) open->pass_by = std::max(open->pass_by, now + kPassSlack);
  open_.push_back(*open);
  return open->pass_by;
}

void Admission::passed(std::uint64_t ticket, Instant at) {
  for (Open& o : open_) {
    if (o.ticket != ticket || o.passed) continue;
    o.passed = true;
    settled_ = std::max(settled_, at) + interval_;
  }
}

std::optional<Admission::Open> Admission::take(std::uint64_t ticket) {
  const auto found =
      std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.ticket == ticket; });
  if (found == open_.end()) return std::nullopt;
  const Open open = *found;
  open_.erase(found);
  return open;
}

void Admission::gave_up(std::uint64_t ticket) {
  const auto open = take(ticket);
  if (open.has_value() && !open->passed) settled_ = std::max(settled_, open->pass_by) + interval_;
}

// One that nobody said was passed on may have been, so its place stays taken.
void Admission::ended(std::uint64_t ticket) {
  gave_up(ticket);
}

AdmissionRecord Admission::record() const {
  return {latest_tat(), boot_id_};
}

std::uint32_t Admission::in_flight() const {
  return static_cast<std::uint32_t>(open_.size());
}

std::uint32_t Admission::waiting() const {
  return waiting_;
}

Tokens Admission::active_tokens() const {
  Tokens sum;
  for (const Open& o : open_)
    sum += o.tokens;
  return sum;
}

}  // namespace troika::policies
