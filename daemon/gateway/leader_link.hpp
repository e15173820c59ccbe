// The gateway's side of the control socket: it tells the leader what goes on and is told where requests go.
// Without a leader it keeps dialling and nothing else changes.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "daemon/gateway/route_book.hpp"
#include "platform/channel.hpp"
#include "platform/quiet_line.hpp"
#include "protocol/codec.hpp"
#include "protocol/messages.hpp"

namespace troika::daemon::gateway {

namespace asio = boost::asio;

class LeaderLink : public std::enable_shared_from_this<LeaderLink> {
 public:
  static constexpr Duration kFirstRetry = std::chrono::milliseconds{200};
  static constexpr Duration kLastRetry = std::chrono::seconds{3};
  static constexpr Duration kStats = std::chrono::seconds{1};
  // Changes closer together than this go out as one.
  static constexpr Duration kSettle = std::chrono::milliseconds{20};
  // The leader answers nothing to statistics, so that only the socket tells of its end.
  static constexpr Duration kRead = std::chrono::hours{24};
  // Failures kept while no leader listens; the oldest go.
  static constexpr std::size_t kKeptReports = 64;

  using Stats = std::function<protocol::GatewayStats()>;

  LeaderLink(asio::any_io_executor executor, std::string socket, RouteBook& routes, Stats stats);

  void start();
  void stop();
  // Some figure of the statistics changed.
  void changed();
  void report(protocol::RequestFailed failed);

 private:
  asio::awaitable<void> run();
  asio::awaitable<void> tell();
  asio::awaitable<void> serve(platform::ChannelPtr channel);
  void take(const protocol::Envelope& envelope);
  template <protocol::Message T>
  void send(const T& message);

  asio::any_io_executor executor_;
  std::string socket_;
  RouteBook& routes_;
  Stats stats_;
  platform::ChannelPtr channel_;  // while connected
  std::deque<protocol::RequestFailed> reports_;
  asio::steady_timer retry_;
  asio::steady_timer tell_;
  std::shared_ptr<platform::QuietLine> line_;
  std::uint64_t next_id_ = 1;
  bool changed_ = false;
  bool stopped_ = false;
};

}  // namespace troika::daemon::gateway
