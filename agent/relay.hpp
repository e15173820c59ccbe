// The only way to a stage's API from outside its machine: over TLS, for the leader's role, on the paths that
// the gateway uses, to the ready stage of exactly the named epoch.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>

#include "agent/stage/stages.hpp"
#include "platform/channel.hpp"

namespace troika::agent {

class Relay {
 public:
  static constexpr std::size_t kMostAtOnce = 64;
  static constexpr Bytes kLargestBody{4u << 20};

  Relay(boost::asio::any_io_executor executor, const Stages& stages)
      : executor_(std::move(executor)), stages_(stages) {}

  // One connection, one request.
  boost::asio::awaitable<void> serve(platform::ChannelPtr channel);

 private:
  struct Accepted {
    protocol::RelayRequest request;
    std::string api;
  };
  std::optional<Refused> judge(const platform::Peer& peer, const protocol::RelayRequest& request,
                               std::string& api) const;
  boost::asio::awaitable<std::optional<Accepted>> accept(platform::ChannelPtr channel);
  boost::asio::awaitable<void> pass_on(platform::ChannelPtr channel, Accepted accepted);

  boost::asio::any_io_executor executor_;
  const Stages& stages_;
  std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);
};

}  // namespace troika::agent
