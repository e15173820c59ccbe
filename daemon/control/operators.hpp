// Operators: they look, and they wish. Over the control socket, or over TLS with the operator role.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/cluster/leader.hpp"
#include "daemon/control/gateway_seat.hpp"
#include "daemon/incidents/incidents.hpp"
#include "platform/channel.hpp"
#include "protocol/codec.hpp"

namespace troika::daemon {

class Operators {
 public:
  // Progress lines of one command are at least this far apart.
  static constexpr Duration kProgressPause = std::chrono::milliseconds{500};
  // `troika status --watch` asks each second; a connection silent for so long is abandoned. One that waits
  // for a command has nothing to say, however long a load takes.
  static constexpr Duration kSilence = std::chrono::minutes{10};
  static constexpr Duration kSilenceOfWaiting = std::chrono::hours{24};

  Operators(Leader& leader, const GatewaySeat& gateway, Incidents& incidents)
      : leader_(leader), gateway_(gateway), incidents_(incidents) {}

  // `first`: the message that the connection began with. Serves until it ends.
  boost::asio::awaitable<void> serve(platform::ChannelPtr channel, protocol::Envelope first);
  void finished(const policies::FinishCommand& command);
  void audited(protocol::AuditReply reply);
  void tick();
  std::size_t audits_waited_for() const { return auditing_.size(); }

 private:
  struct Waiting {
    platform::ChannelPtr channel;
    std::uint64_t re = 0;
    std::string replica;
    std::string told;  // the last line
    Instant told_at;
  };

  struct Auditing {
    platform::ChannelPtr channel;
    std::uint64_t re = 0;
  };

  bool waits(const platform::ChannelPtr& channel) const;
  void take(const platform::ChannelPtr& channel, const protocol::Envelope& envelope);
  void take(const platform::ChannelPtr& channel, std::uint64_t id, const protocol::StatusRequest& request);
  void take(const platform::ChannelPtr& channel, std::uint64_t id, const protocol::Command& command);
  void take(const platform::ChannelPtr& channel, std::uint64_t id, const protocol::IncidentsRequest& request);
  void take(const platform::ChannelPtr& channel, std::uint64_t id, const protocol::AuditRequest& request);
  void forget(const platform::ChannelPtr& channel);
  void tell_audits(Instant now);
  template <protocol::Message T>
  void send(const platform::ChannelPtr& channel, const T& message);

  Leader& leader_;
  const GatewaySeat& gateway_;
  Incidents& incidents_;
  std::map<std::uint64_t, Waiting> waiting_;  // by command
  std::vector<Auditing> auditing_;            // for the leader's one audit
  Instant audits_told_at_;
  std::uint64_t next_command_ = 1;
  std::uint64_t next_message_ = 1;
};

}  // namespace troika::daemon
