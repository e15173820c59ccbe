#include "daemon/gateway/leader_link.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "platform/log.hpp"

namespace troika::daemon::gateway {
namespace {

asio::awaitable<void> wait_for(asio::steady_timer& timer) {
  boost::system::error_code woken;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

}  // namespace

LeaderLink::LeaderLink(asio::any_io_executor executor, std::string socket, RouteBook& routes, Stats stats)
    : executor_(executor),
      socket_(std::move(socket)),
      routes_(routes),
      stats_(std::move(stats)),
      retry_(executor),
      tell_(executor),
      line_(std::make_shared<platform::QuietLine>(executor, std::chrono::minutes{1})) {}

void LeaderLink::start() {
  asio::co_spawn(
      executor_, [self = shared_from_this()] { return self->run(); }, asio::detached);
  asio::co_spawn(
      executor_, [self = shared_from_this()] { return self->tell(); }, asio::detached);
}

void LeaderLink::stop() {
  stopped_ = true;
  if (channel_) channel_->close();
  retry_.cancel();
  tell_.cancel();
  line_->stop();
}

template <protocol::Message T>
void LeaderLink::send(const T& message) {
  if (channel_) channel_->send({platform::Frame::Kind::Message, protocol::encode(message, next_id_++)});
}

void LeaderLink::changed() {
  if (std::exchange(changed_, true)) return;
  tell_.expires_after(kSettle);
}

void LeaderLink::report(protocol::RequestFailed failed) {
  if (channel_) return send(failed);
  reports_.push_back(std::move(failed));
  if (reports_.size() > kKeptReports) reports_.pop_front();
}

asio::awaitable<void> LeaderLink::run() {
  const auto self = shared_from_this();
  Duration pause = kFirstRetry;
  while (!stopped_) {
    auto dialled = co_await platform::dial_unix(socket_, std::chrono::seconds{5});
    if (stopped_) co_return;
    if (dialled.ok()) {
      pause = kFirstRetry;
      co_await serve(std::move(dialled).value());
      if (stopped_) co_return;
      line_->say("the leader is away; requests go on as it told last");
    }
    retry_.expires_after(pause);
    co_await wait_for(retry_);
    pause = std::min(pause * 2, kLastRetry);
  }
}

asio::awaitable<void> LeaderLink::serve(platform::ChannelPtr channel) {
  channel_ = channel;
  protocol::GatewayHello hello;
  hello.pid = ::getpid();
  hello.version = TROIKA_VERSION;
  if (const auto& route = routes_.route()) {
    hello.generation = route->generation;
    hello.term = route->term;
  }
  send(hello);
  send(stats_());
  while (!reports_.empty()) {
    send(reports_.front());
    reports_.pop_front();
  }
  while (!stopped_) {
    auto frame = co_await channel->read(kRead);
    if (!frame.ok()) break;
    if (frame->kind != platform::Frame::Kind::Message) break;
    auto envelope = protocol::parse_envelope(frame->payload);
    if (!envelope.ok() || !protocol::is_supported(*envelope)) {
      platform::log("the leader says something that this version does not understand; connecting anew");
      break;
    }
    take(*envelope);
  }
  channel->close();
  channel_.reset();
}

void LeaderLink::take(const protocol::Envelope& envelope) {
  if (envelope.type == protocol::Refusal::kType) {
    if (auto refusal = protocol::decode<protocol::Refusal>(envelope); refusal.ok())
      line_->say("the leader refused a message: " + refusal->code + ": " + refusal->message);
    return;
  }
  if (envelope.type != protocol::Route::kType)
    return send(
        protocol::Refusal{envelope.id, "UNKNOWN_TYPE", "a gateway does not know \"" + envelope.type + "\""});
  auto route = protocol::decode<protocol::Route>(envelope);
  if (!route.ok()) return send(protocol::Refusal{envelope.id, "MALFORMED", route.error().message()});
  auto applied = routes_.apply(*route);
  if (!applied.ok()) {
    const bool stale = applied.error().subject == "STALE_TERM";
    platform::log("route refused: " + applied.error().message());
    return send(
        protocol::Refusal{envelope.id, stale ? "STALE_TERM" : "NOT_WRITTEN", applied.error().message()});
  }
  send(protocol::RouteApplied{route->term, route->generation});
  std::string targets;
  for (const auto& target : route->targets)
    targets +=
        (targets.empty() ? "" : ", then ") + target.replica + " epoch " + std::to_string(target.epoch.count);
  platform::log("route " + std::to_string(route->term.count) + "." + std::to_string(route->generation) +
                ": " + (targets.empty() ? "nowhere" : targets) + (route->draining ? ", draining" : "") +
                (route->reason.empty() ? "" : " (" + route->reason + ")"));
  changed();
}

asio::awaitable<void> LeaderLink::tell() {
  const auto self = shared_from_this();
  while (!stopped_) {
    // Set before waiting: a change while nobody waits must not be put off by it.
    tell_.expires_after(changed_ ? kSettle : kStats);
    co_await wait_for(tell_);
    // changed() moved the expiry and thereby woke us: once more, for the settling time.
    if (changed_ && tell_.expiry() > asio::steady_timer::clock_type::now()) co_await wait_for(tell_);
    changed_ = false;
    send(stats_());
  }
}

}  // namespace troika::daemon::gateway
