// The leader's side of its gateway: one connection, the route it is told, the figures it tells.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>

#include "daemon/cluster/leader.hpp"
#include "daemon/incidents/request_failures.hpp"
#include "platform/channel.hpp"
#include "protocol/messages.hpp"

namespace troika::daemon {

class GatewaySeat {
 public:
  static constexpr Duration kRepeat = std::chrono::seconds{3};

  GatewaySeat(Leader& leader, RequestFailures& failures) : leader_(leader), failures_(failures) {}

  // Serves a gateway until its connection ends; a newer one takes the seat.
  boost::asio::awaitable<void> serve(platform::ChannelPtr channel, protocol::Envelope first);
  void give(const protocol::Route& route);
  // Each tick: a route that is not applied after kRepeat is given again (the gateway's disk may have been
  // full).
  void tick();

  bool connected() const { return channel_ != nullptr; }
  std::int64_t pid() const { return hello_ ? hello_->pid : 0; }
  protocol::GatewayStatus status() const;

 private:
  bool up_to_date() const;
  void take(const protocol::Envelope& envelope);
  void take(const protocol::RouteApplied& applied);
  void take(const protocol::GatewayStats& stats);
  void take(const protocol::RequestFailed& failed);
  void take(const protocol::Refusal& refusal);
  template <protocol::Message T>
  void send(const T& message);

  Leader& leader_;
  RequestFailures& failures_;
  platform::ChannelPtr channel_;
  std::optional<protocol::GatewayHello> hello_;
  protocol::GatewayStats stats_;
  protocol::RouteApplied applied_;
  Instant given_at_{};
  std::uint64_t next_id_ = 1;
};

}  // namespace troika::daemon
