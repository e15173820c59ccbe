// Who is at the other end of a new connection, and what it may do here.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/cluster/leader.hpp"
#include "daemon/control/gateway_seat.hpp"
#include "daemon/control/operators.hpp"
#include "platform/channel.hpp"

namespace troika::daemon {

class Doors {
 public:
  Doors(Leader& leader, GatewaySeat& gateway, Operators& operators)
      : leader_(leader), gateway_(gateway), operators_(operators) {}

  // TLS: agents and operators, by the role of the certificate.
  boost::asio::awaitable<void> serve_remote(platform::ChannelPtr channel);
  // The control socket: operators and the gateway of this machine.
  boost::asio::awaitable<void> serve_local(platform::ChannelPtr channel);

 private:
  // The first message, if it is one of this major version; else the connection is answered and closed.
  boost::asio::awaitable<std::optional<protocol::Envelope>> first_message(platform::ChannelPtr channel);
  boost::asio::awaitable<void> refuse(platform::ChannelPtr channel, std::uint64_t re, std::string code,
                                      std::string message);

  Leader& leader_;
  GatewaySeat& gateway_;
  Operators& operators_;
};

}  // namespace troika::daemon
