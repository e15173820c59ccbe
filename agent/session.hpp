// What the agent does for a leader, on one connection: Hello, then heartbeats, commands, events.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "agent/spool.hpp"
#include "agent/stage/fence.hpp"
#include "agent/stage/stages.hpp"
#include "agent/verification.hpp"
#include "config/agent.hpp"
#include "platform/channel.hpp"
#include "protocol/codec.hpp"

namespace troika::agent {

// What outlives the connections.
struct AgentParts {
  boost::asio::any_io_executor executor;
  const config::AgentConfig& config;
  std::string boot_id;
  std::string relay_address;
  Fence& fence;
  Spool& spool;
  Stages& stages;
  Verification& verification;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(AgentParts parts, platform::ChannelPtr channel);

  // Until the connection ends. True: a leader's term was accepted on it.
  boost::asio::awaitable<bool> run();
  // An event that has just been spooled.
  void announce(const protocol::StageEvent& event);
  void close() { channel_->close(); }

 private:
  boost::asio::awaitable<void> beat();
  boost::asio::awaitable<void> probe(protocol::Probe message, std::string api, std::string model,
                                     const adapters::EngineAdapter* adapter);
  Duration silence_limit() const;
  protocol::Hello hello() const;

  void dispatch(const protocol::Envelope& envelope);
  void take(std::uint64_t id, const protocol::Welcome& message);
  void take(std::uint64_t id, const protocol::HeartbeatAck& message);
  void take(std::uint64_t id, const protocol::Verify& message);
  void take(std::uint64_t id, const protocol::Audit& message);
  void take(std::uint64_t id, const protocol::EndAudit& message);
  void take(std::uint64_t id, const protocol::StartStage& message);
  void take(std::uint64_t id, const protocol::StopStage& message);
  void take(std::uint64_t id, const protocol::Probe& message);
  void take(std::uint64_t id, const protocol::StageEventAck& message);
  void take(std::uint64_t id, const protocol::Refusal& message);
  void refuse(std::uint64_t re, const Refused& refused);
  // False: refused, with the answer sent.
  bool obey(std::uint64_t id, const policies::FenceAnswer& answer);

  template <protocol::Message T>
  void send(const T& message) {
    channel_->send({platform::Frame::Kind::Message, protocol::encode(message, next_id_++)});
  }

  AgentParts parts_;
  platform::ChannelPtr channel_;
  boost::asio::steady_timer timer_;
  std::uint64_t next_id_ = 1;
  std::chrono::milliseconds heartbeat_{1000};
  int unanswered_ = 0;  // heartbeats since the last acknowledgement
  bool welcome_ = false;
};

}  // namespace troika::agent
