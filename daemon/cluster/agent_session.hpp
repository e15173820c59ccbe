// One agent's connection, from its Hello to its end.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/cluster/leader.hpp"
#include "platform/channel.hpp"

namespace troika::daemon {

// The agent says Hello within this, and is never silent for longer than kAgentSilence
// (policies::Patience::node_lost judges earlier; this only frees the connection).
inline constexpr Duration kHelloLimit = std::chrono::seconds{10};
inline constexpr Duration kAgentSilence = std::chrono::seconds{30};

// `first`: the message that the peer began with. Serves until the connection ends.
boost::asio::awaitable<void> serve_agent(Leader& leader, platform::ChannelPtr channel,
                                         protocol::Envelope first);

// Why this Hello is not accepted on this connection; empty: it is.
std::optional<protocol::Refusal> check_hello(const protocol::Hello& hello, const platform::Peer& peer,
                                             const config::ClusterConfig& config, std::uint64_t id);

}  // namespace troika::daemon
