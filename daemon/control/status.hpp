// The whole cluster on one screen: what `troika status` shows.
#pragma once

#include "daemon/cluster/leader.hpp"
#include "daemon/control/gateway_seat.hpp"
#include "daemon/incidents/incidents.hpp"
#include "protocol/messages.hpp"

namespace troika::daemon {

Result<protocol::StatusReply> status_reply(const Leader& leader, const GatewaySeat& gateway,
                                           Incidents& incidents, std::uint64_t re);

}  // namespace troika::daemon
