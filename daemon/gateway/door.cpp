#include "daemon/gateway/door.hpp"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <chrono>
#include <cmath>

#include "platform/channel.hpp"
#include "platform/clock.hpp"
#include "platform/log.hpp"
#include "policies/spread.hpp"

namespace troika::daemon::gateway {
namespace {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

// "host:port", IPv6 hosts in brackets.
Result<Address> parse_address(const std::string& text) {
  const Error bad{"read the relay's address", text, "host:port is expected"};
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad;
  Address address;
  address.host = text.substr(0, colon);
  if (address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, address.port);
  if (read.ec != std::errc{} || read.ptr != end || address.port == 0) return bad;
  return address;
}

// Times that an admission which a slow disk made too late is decided anew.
constexpr int kRenewals = 3;

asio::awaitable<void> wait_for(asio::steady_timer& timer) {
  boost::system::error_code woken;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

}  // namespace

// First come, first served: a place in a line of which the first `served` have their turn; left when this
// object goes, which wakes the one whose turn it is then.
class Door::Line {
 public:
  Line(const asio::any_io_executor& executor, Timers& line, std::size_t served)
      : timer_(std::make_unique<asio::steady_timer>(executor)), line_(&line), served_(served) {
    line_->push_back(timer_.get());
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    const auto place = before();
    line_->erase(line_->begin() + static_cast<std::ptrdiff_t>(place));
    if (place < served_ && line_->size() >= served_) (*line_)[served_ - 1]->cancel();
  }

  bool my_turn() const { return before() < served_; }
  asio::steady_timer& timer() { return *timer_; }

 private:
  std::size_t before() const {
    return static_cast<std::size_t>(std::find(line_->begin(), line_->end(), timer_.get()) - line_->begin());
  }

  std::unique_ptr<asio::steady_timer> timer_;
  Timers* line_;
  std::size_t served_;
};

Door::Door(asio::any_io_executor executor, const policies::AdmissionRule& rule, DoorLimits limits,
           std::shared_ptr<platform::TlsContext> tls, policies::Admission admission, Ledger& ledger,
           RouteBook& routes)
    : executor_(executor),
      rule_(rule),
      admission_(std::move(admission)),
      limits_(limits),
      tls_(std::move(tls)),
      ledger_(ledger),
      routes_(routes),
      trouble_line_(std::make_shared<platform::QuietLine>(executor)) {}

Door::~Door() {
  trouble_line_->stop();
}

Tokens Door::smallest_capacity() const {
  Tokens smallest;
  const auto& route = routes_.route();
  if (!route) return smallest;
  for (const auto& target : route->targets)
    if (target.kv_capacity.count != 0 && (smallest.count == 0 || target.kv_capacity < smallest))
      smallest = target.kv_capacity;
  return smallest;
}

std::optional<Turned> Door::no_way() const {
  if (routes_.target(0) != nullptr) return std::nullopt;
  const auto& route = routes_.route();
  const bool draining = route && route->draining;
  const auto trouble = draining ? Trouble::Draining : Trouble::NoReplica;
  std::string message = draining ? "the cluster is being drained" : "no replica serves now";
  if (route && !route->reason.empty()) message += ": " + route->reason;
  return Turned{trouble, error_answer(trouble, message, limits_.no_replica_retry_s)};
}

Turned Door::turned(const policies::Refused& refused) const {
  const auto answer = [&](Trouble trouble) {
    return Turned{trouble, error_answer(trouble, refused.message, refused.retry_after_s)};
  };
  switch (refused.kind) {
    case policies::RefusalKind::RateLimit:
      return answer(Trouble::RateLimitExceeded);
    case policies::RefusalKind::InFlight:
      return answer(Trouble::InFlightLimit);
    case policies::RefusalKind::PromptCap:
    case policies::RefusalKind::Window:
      return answer(Trouble::ContextLengthExceeded);
    // Without Retry-After it would never fit.
    case policies::RefusalKind::KvCapacity:
      return answer(refused.retry_after_s > 0 ? Trouble::InFlightLimit : Trouble::ContextLengthExceeded);
  }
  return answer(Trouble::InternalError);
}

Turned Door::waited_too_long() const {
  const auto retry = std::max(1.0, std::ceil(1.0 / rule_.rate));
  return {Trouble::RateLimitExceeded,
          error_answer(Trouble::RateLimitExceeded, "the request waited in the queue as long as allowed",
                       static_cast<std::uint32_t>(std::min(retry, 1e9)))};
}

std::optional<Turned> Door::refused_at_sight() const {
  if (auto turned_away = no_way()) return turned_away;
  const auto answer = admission_.peek({Tokens{1}, Tokens{1}}, Tokens{}, platform::now());
  if (const auto* refused = std::get_if<policies::Refused>(&answer)) return turned(*refused);
  return std::nullopt;
}

policies::AdmissionAnswer Door::foresee(const policies::RequestSize& size, bool queued) const {
  policies::Admission copy = admission_;
  return copy.ask(size, smallest_capacity(), platform::now(), queued);
}

bool Door::may_open(const Exchange& exchange, const Guest& guest, bool queued) const {
  return !exchange.gone() && !no_way() &&
         std::holds_alternative<policies::Admitted>(foresee(guest.size, queued));
}

asio::awaitable<Entry> Door::enter(Exchange& exchange, const Guest& guest) {
  std::optional<Line> queued;
  const Instant leave_at = platform::now() + rule_.queue_wait;
  while (true) {
    auto decided = co_await stand(exchange, guest, queued, leave_at);
    if (decided) co_return std::move(*decided);
    Line place(executor_, opening_, limits_.opening);
    bool waited = false;
    while (!place.my_turn()) {
      waited = true;
      place.timer().expires_after(std::chrono::hours{1});  // cancelled when one before it is through
      co_await wait_for(place.timer());
    }
    // Those before it may have taken the place that was foreseen. Where they did not it opens its way from
    // where it stands: if all went back to the line's end, a line that is long enough would go round for
    // ever.
    if (waited && !may_open(exchange, guest, queued.has_value())) continue;
    auto opened = co_await open_way();
    if (exchange.gone()) {
      leave_queue(queued);
      if (opened.ok()) opened->upstream->cancel();
      co_return WentAway{};
    }
    if (!opened.ok()) {
      leave_queue(queued);
      co_return Turned{
          Trouble::UpstreamFailed,
          error_answer(Trouble::UpstreamFailed, "no replica could be reached: " + opened.error().message())};
    }
    auto entry = co_await pass(std::move(opened).value(), guest, queued);
    if (entry) co_return std::move(*entry);
  }
}

void Door::leave_queue(std::optional<Line>& queued) {
  if (!queued) return;
  admission_.leave_queue();
  queued.reset();
}

asio::awaitable<std::optional<Entry>> Door::stand(Exchange& exchange, const Guest& guest,
                                                  std::optional<Line>& queued, Instant leave_at) {
  while (true) {
    if (exchange.gone()) {
      leave_queue(queued);
      co_return Entry{WentAway{}};
    }
    if (auto turned_away = no_way()) {
      leave_queue(queued);
      co_return Entry{std::move(*turned_away)};
    }
    Instant until = leave_at;
    if (!queued || queued->my_turn()) {
      const auto answer = foresee(guest.size, queued.has_value());
      if (std::holds_alternative<policies::Admitted>(answer)) co_return std::nullopt;
      if (const auto* refused = std::get_if<policies::Refused>(&answer)) {
        leave_queue(queued);
        co_return Entry{turned(*refused)};
      }
      until = std::get<policies::Waiting>(answer).until;
      if (!queued) {
        (void)admission_.ask(guest.size, smallest_capacity(), platform::now());  // answers the same: Waiting
        queued.emplace(executor_, queue_, 1);
        continue;
      }
    }
    if (platform::now() >= leave_at) {
      leave_queue(queued);
      co_return Entry{waited_too_long()};
    }
    auto& timer = queued->timer();
    timer.expires_after(
        std::max<Duration>(std::min(until, leave_at) - platform::now(), std::chrono::milliseconds{1}));
    exchange.on_gone([&timer] { timer.cancel(); });
    co_await wait_for(timer);
    exchange.on_gone({});
  }
}

asio::awaitable<Result<std::shared_ptr<Upstream>>> Door::dial(const protocol::RouteTarget& target) {
  auto address = parse_address(target.relay_address);
  if (!address.ok()) co_return address.error();
  auto channel = co_await platform::dial_tls(address->host, address->port, tls_, platform::Role::Agent,
                                             target.node, limits_.dial);
  if (!channel.ok()) co_return channel.error();
  co_return std::make_shared<Upstream>(executor_, std::move(channel).value());
}

asio::awaitable<Result<Door::Opened>> Door::open_way() {
  // The route may change while one of its targets is dialled.
  const auto targets = routes_.route() ? routes_.route()->targets : std::vector<protocol::RouteTarget>{};
  const bool spread = routes_.route() && routes_.route()->spread;
  std::vector<std::uint32_t> in_flight;
  for (const auto& target : targets)
    in_flight.push_back(load(target));
  Error last{"reach", "a replica", "the route has none"};
  for (const std::size_t position : policies::order_of_targets(in_flight, spread, turn_++)) {
    const protocol::RouteTarget& target = targets[position];
    auto upstream = co_await dial(target);
    if (upstream.ok()) co_return Opened{target, std::move(upstream).value()};
    last = upstream.error();
    trouble_line_->say("replica " + target.replica + " epoch " + std::to_string(target.epoch.count) + ": " +
                       last.message());
  }
  co_return last;
}

asio::awaitable<std::optional<Entry>> Door::pass(Opened opened, const Guest& guest,
                                                 std::optional<Line>& queued) {
  const auto answer = admission_.ask(guest.size, smallest_capacity(), platform::now(), queued.has_value());
  if (const auto* admission = std::get_if<policies::Admitted>(&answer)) {
    queued.reset();
    co_return co_await admitted(std::move(opened), guest, *admission);
  }
  opened.upstream->cancel();
  if (const auto* refused = std::get_if<policies::Refused>(&answer)) {
    queued.reset();
    co_return Entry{turned(*refused)};
  }
  if (!queued) queued.emplace(executor_, queue_, 1);
  co_return std::nullopt;
}

// Both orders of writing are wrong but this one: first the ledger, then the wire. False: it must not be
// passed on.
Result<Instant> Door::write_down(const Guest& guest, const protocol::RouteTarget& target,
                                 policies::Admitted admission) {
  TROIKA_CHECK(ledger_.admit({guest.request, platform::wall_now(), target.replica, target.epoch,
                              guest.size.prompt, guest.size.max_output},
                             admission_.record()));
  Instant pass_by = admission.pass_by;
  for (int tries = 0; platform::now() > pass_by && tries < kRenewals; ++tries) {
    const auto renewed = admission_.renew(admission.ticket, platform::now());
    if (!renewed) break;
    pass_by = *renewed;
    TROIKA_CHECK(ledger_.renew(admission_.record()));
  }
  if (platform::now() <= pass_by) return pass_by;
  (void)ledger_.finish(guest.request, "too_late", Tokens{}, platform::wall_now());
  return Error{"write down", "an admission", "the disk takes too long"};
}

asio::awaitable<std::optional<Entry>> Door::admitted(Opened opened, const Guest& guest,
                                                     policies::Admitted admission) {
  const auto pass_by = write_down(guest, opened.target, admission);
  if (!pass_by.ok()) {
    admission_.gave_up(admission.ticket);
    opened.upstream->cancel();
    trouble_line_->say("a request is refused: " + pass_by.error().message());
    auto answer = error_answer(Trouble::LedgerUnavailable,
                               "the gateway cannot write its record of requests (" + pass_by.error().reason +
                                   "), and what is not recorded is not passed on; ask again later, and tell "
                                   "the operator to look at the disk of its state_dir",
                               limits_.no_replica_retry_s);
    co_return Entry{Turned{Trouble::LedgerUnavailable, std::move(answer)}};
  }
  enter_load(opened.target);
  auto written =
      co_await opened.upstream->pass(relay_request(guest, opened.target), guest.body, limits_.pass);
  // What counts is when it was handed to the system: under load that is later than the decision, and until
  // then it counts as passed on at pass_by. An agent that took it later still moves the rate with it, on disk
  // too.
  const Instant at = platform::now();
  admission_.passed(admission.ticket, at);
  if (at > *pass_by) {
    auto renewed = ledger_.renew(admission_.record());
    if (!renewed.ok()) trouble_line_->say(renewed.error().message());
  }
  // It may have arrived or not: the engine's answer, or its absence, is judged by who waits for it.
  if (!written.ok())
    trouble_line_->say("replica " + opened.target.replica + ": " + written.error().message());
  co_return Entry{Passed{admission.ticket, std::move(opened.target), std::move(opened.upstream)}};
}

protocol::RelayRequest Door::relay_request(const Guest& guest, const protocol::RouteTarget& target) {
  protocol::RelayRequest request;
  request.replica = target.replica;
  request.epoch = target.epoch;
  request.method = "POST";
  request.path = std::string(path(guest.form));
  request.body_bytes = Bytes{guest.body.size()};
  request.request = guest.request;
  return request;
}

asio::awaitable<Result<Passed>> Door::replay(const Passed& failed, const Guest& guest) {
  const auto targets = routes_.route() ? routes_.route()->targets : std::vector<protocol::RouteTarget>{};
  const auto same = [&](const protocol::RouteTarget& t) {
    return t.replica == failed.target.replica && t.epoch == failed.target.epoch;
  };
  const auto other = std::find_if_not(targets.begin(), targets.end(), same);
  if (other == targets.end()) co_return Error{"pass the request on to", "another replica", "none is proven"};
  auto upstream = co_await dial(*other);
  if (!upstream.ok()) co_return upstream.error();
  Passed passed{failed.ticket, *other, std::move(upstream).value()};
  if (auto written = ledger_.replayed(guest.request, passed.target.replica, passed.target.epoch);
      !written.ok())
    co_return written.error();
  auto handed = co_await passed.upstream->pass(relay_request(guest, passed.target), guest.body, limits_.pass);
  if (!handed.ok()) co_return handed.error();
  leave_load(failed.target);
  enter_load(passed.target);
  co_return passed;
}

void Door::leave(const Passed& passed) {
  admission_.ended(passed.ticket);
  leave_load(passed.target);
}

std::uint32_t Door::load(const protocol::RouteTarget& target) const {
  const auto found = loads_.find({target.replica, target.epoch});
  return found == loads_.end() ? 0 : found->second;
}

void Door::enter_load(const protocol::RouteTarget& target) {
  ++loads_[{target.replica, target.epoch}];
}

void Door::leave_load(const protocol::RouteTarget& target) {
  const auto found = loads_.find({target.replica, target.epoch});
  if (found == loads_.end()) return;
  if (--found->second == 0) loads_.erase(found);
}

std::vector<protocol::TargetLoad> Door::loads() const {
  std::vector<protocol::TargetLoad> out;
  for (const auto& [key, count] : loads_)
    out.push_back({key.first, key.second, count});
  return out;
}

}  // namespace troika::daemon::gateway
