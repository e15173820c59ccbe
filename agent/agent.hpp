// troika-agent: owns the truth about one node. One reactor thread, one thread for proofs.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "agent/relay.hpp"
#include "agent/session.hpp"
#include "config/agent.hpp"
#include "platform/channel.hpp"
#include "platform/files.hpp"
#include "platform/tls.hpp"

namespace troika::agent {

class Agent {
 public:
  // Takes the state directory, finds the stages that run, opens the relay. Errors say what to do.
  static Result<std::unique_ptr<Agent>> make(boost::asio::any_io_executor executor,
                                             config::AgentConfig config);
  Agent(const Agent&) = delete;

  // Dials the leaders until stop().
  void begin();
  // Leaves the stages running.
  void stop();

 private:
  Agent(boost::asio::any_io_executor executor, config::AgentConfig config, platform::DirectoryLock lock,
        std::shared_ptr<platform::TlsContext> tls, Spool spool);
  boost::asio::awaitable<void> dial_leaders();
  AgentParts parts();
  Status open_relay();

  boost::asio::any_io_executor executor_;
  config::AgentConfig config_;
  platform::DirectoryLock lock_;
  std::shared_ptr<platform::TlsContext> tls_;
  Fence fence_;
  Spool spool_;
  Stages stages_;
  Verification verification_;
  Relay relay_;
  std::unique_ptr<platform::Listener> listener_;
  std::shared_ptr<Session> session_;
  boost::asio::steady_timer timer_;
  std::string boot_id_;
  std::string relay_address_;
  bool stopping_ = false;
};

}  // namespace troika::agent
