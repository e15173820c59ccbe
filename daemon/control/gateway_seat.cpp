#include "daemon/control/gateway_seat.hpp"

#include <chrono>
#include <utility>

#include "platform/log.hpp"

namespace troika::daemon {
namespace {

// It tells its figures each second.
constexpr Duration kGatewaySilence = std::chrono::seconds{15};

}  // namespace

template <protocol::Message T>
void GatewaySeat::send(const T& message) {
  if (channel_) channel_->send({platform::Frame::Kind::Message, protocol::encode(message, next_id_++)});
}

void GatewaySeat::give(const protocol::Route& route) {
  given_at_ = leader_.now();
  send(route);
}

bool GatewaySeat::up_to_date() const {
  const auto& route = leader_.route();
  return route && applied_.term == route->term && applied_.generation == route->generation;
}

void GatewaySeat::tick() {
  if (!channel_ || !leader_.route() || up_to_date() || leader_.now() - given_at_ < kRepeat) return;
  give(*leader_.route());
}

boost::asio::awaitable<void> GatewaySeat::serve(platform::ChannelPtr channel, protocol::Envelope first) {
  auto hello = protocol::decode<protocol::GatewayHello>(first);
  if (!hello.ok()) {
    channel->send(
        {platform::Frame::Kind::Message,
         protocol::encode(protocol::Refusal{first.id, "MALFORMED", hello.error().message()}, next_id_++)});
    co_await channel->flush_and_close(std::chrono::seconds{2});
    co_return;
  }
  if (channel_) channel_->close();
  channel_ = channel;
  hello_ = *hello;
  stats_ = {};
  applied_ = {hello->term, hello->generation};
  platform::log("gateway connected: pid " + std::to_string(hello->pid) + ", route " +
                std::to_string(hello->term.count) + "." + std::to_string(hello->generation));
  leader_.term_heard(hello->term);
  if (leader_.route()) give(*leader_.route());
  while (channel_ == channel) {
    auto frame = co_await channel->read(kGatewaySilence);
    if (channel_ != channel || !frame.ok() || frame->kind != platform::Frame::Kind::Message) break;
    auto envelope = protocol::parse_envelope(frame->payload);
    if (!envelope.ok() || !protocol::is_supported(*envelope)) break;
    take(*envelope);
  }
  channel->close();
  if (channel_ != channel) co_return;
  channel_.reset();
  platform::log("the gateway is not connected any more");
}

void GatewaySeat::take(const protocol::Envelope& envelope) {
  bool known = false;
  const auto offer = [&]<class T>(T*) {
    if (known || envelope.type != T::kType) return;
    known = true;
    const auto message = protocol::decode<T>(envelope);
    if (message.ok()) return take(*message);
    send(protocol::Refusal{envelope.id, "MALFORMED", message.error().message()});
  };
  offer(static_cast<protocol::RouteApplied*>(nullptr));
  offer(static_cast<protocol::GatewayStats*>(nullptr));
  offer(static_cast<protocol::RequestFailed*>(nullptr));
  offer(static_cast<protocol::Refusal*>(nullptr));
  if (!known)
    send(protocol::Refusal{envelope.id, "UNKNOWN_TYPE",
                           "the leader does not know \"" + envelope.type + "\" here"});
}

void GatewaySeat::take(const protocol::RouteApplied& applied) {
  applied_ = applied;
}

void GatewaySeat::take(const protocol::GatewayStats& stats) {
  stats_ = stats;
  // Only figures taken after the route in force was applied tell that nothing new can be in flight.
  if (up_to_date() && stats.generation == applied_.generation) leader_.gateway_loads(stats.loads);
}

void GatewaySeat::take(const protocol::RequestFailed& failed) {
  platform::log("request " + failed.request + " at " + failed.replica + " epoch " +
                std::to_string(failed.epoch.count) + ": " + std::string(name(failed.finding.code)) + ": " +
                failed.finding.message);
  failures_.take(failed, leader_.now());
}

void GatewaySeat::take(const protocol::Refusal& refusal) {
  platform::log("the gateway refused: " + refusal.code + ": " + refusal.message);
}

protocol::GatewayStatus GatewaySeat::status() const {
  protocol::GatewayStatus status;
  status.connected = connected();
  status.pid = pid();
  status.listen = text(leader_.config().gateway.listen);
  status.generation = applied_.generation;
  if (leader_.route()) {
    status.targets = leader_.route()->targets;
    status.reason = leader_.route()->reason;
  }
  status.stats = stats_;
  return status;
}

}  // namespace troika::daemon
