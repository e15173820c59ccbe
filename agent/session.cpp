#include "agent/session.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

#include "agent/node/facts.hpp"
#include "agent/probe.hpp"
#include "platform/clock.hpp"
#include "platform/log.hpp"

namespace troika::agent {
namespace {

namespace asio = boost::asio;
using platform::Frame;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kMissedBeats = 5;             // without an acknowledgement: the leader is not there any more
constexpr milliseconds kShortestBeat{100};  // whatever the leader asks for
constexpr milliseconds kLongestBeat{60'000};

std::uint64_t random_number() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

}  // namespace

Session::Session(AgentParts parts, platform::ChannelPtr channel)
    : parts_(std::move(parts)), channel_(std::move(channel)), timer_(parts_.executor) {}

Duration Session::silence_limit() const {
  return heartbeat_ * kMissedBeats;
}

protocol::Hello Session::hello() const {
  protocol::Hello hello;
  hello.cluster = parts_.config.cluster;
  hello.node = parts_.config.node;
  hello.version = TROIKA_VERSION;
  hello.boot_id = parts_.boot_id;
  hello.session = random_number();
  hello.highest_term = parts_.fence.state().highest_term;
  hello.highest_epochs = parts_.fence.state().highest_epochs;
  hello.stages = parts_.stages.reports();
  hello.relay_address = parts_.relay_address;
  for (const config::EngineProfile& engine : parts_.config.engines)
    hello.engines.emplace_back(config::name(engine.kind));
  if (!parts_.config.engines.empty()) hello.link_address = config::text(parts_.config.engines.front().link);
  return hello;
}

asio::awaitable<bool> Session::run() {
  send(hello());
  asio::co_spawn(
      parts_.executor, [self = shared_from_this()] { return self->beat(); }, asio::detached);
  while (channel_->open()) {
    const auto frame = co_await channel_->read(silence_limit() + seconds{1});
    if (!frame.ok()) {
      platform::log("the leader at " + channel_->peer().address +
                    " is not connected any more: " + frame.error().message());
      break;
    }
    const auto envelope = frame->kind == Frame::Kind::Message
                              ? protocol::parse_envelope(frame->payload)
                              : Result<protocol::Envelope>{Error{"read the message", "", "a raw frame"}};
    if (!envelope.ok()) {
      refuse(0, {"MALFORMED", envelope.error().message()});
      break;
    }
    if (!protocol::is_supported(*envelope)) {
      refuse(envelope->id,
             {"VERSION_UNSUPPORTED", "protocol " + std::to_string(protocol::kMajorVersion) +
                                         " is spoken here, not " + std::to_string(envelope->major)});
      break;
    }
    dispatch(*envelope);
  }
  parts_.verification.end_audit(0);  // who asked for it is told by nobody any more
  co_await channel_->flush_and_close(seconds{2});
  timer_.cancel();
  co_return welcome_;
}

asio::awaitable<void> Session::beat() {
  while (channel_->open()) {
    if (unanswered_ == kMissedBeats) {
      platform::log("the leader at " + channel_->peer().address + " does not answer heartbeats any more");
      channel_->close();
      co_return;
    }
    ++unanswered_;
    send(protocol::Heartbeat{node::read_node("/", {parts_.config.node, parts_.config.interfaces}),
                             parts_.stages.reports()});
    timer_.expires_after(heartbeat_);
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

void Session::announce(const protocol::StageEvent& event) {
  if (welcome_) send(event);
}

void Session::dispatch(const protocol::Envelope& envelope) {
  bool known = false;
  const auto offer = [&]<class T>(T*) {
    if (known || envelope.type != T::kType) return;
    known = true;
    const auto message = protocol::decode<T>(envelope);
    if (message.ok())
      take(envelope.id, *message);
    else
      refuse(envelope.id, {"MALFORMED", message.error().message()});
  };
  offer(static_cast<protocol::HeartbeatAck*>(nullptr));
  offer(static_cast<protocol::StageEventAck*>(nullptr));
  offer(static_cast<protocol::Welcome*>(nullptr));
  offer(static_cast<protocol::Verify*>(nullptr));
  offer(static_cast<protocol::Audit*>(nullptr));
  offer(static_cast<protocol::EndAudit*>(nullptr));
  offer(static_cast<protocol::StartStage*>(nullptr));
  offer(static_cast<protocol::StopStage*>(nullptr));
  offer(static_cast<protocol::Probe*>(nullptr));
  offer(static_cast<protocol::Refusal*>(nullptr));
  if (!known) refuse(envelope.id, {"UNKNOWN_TYPE", "the agent does not know \"" + envelope.type + "\""});
}

void Session::refuse(std::uint64_t re, const Refused& refused) {
  platform::log("refused: " + refused.code + ": " + refused.message);
  send(protocol::Refusal{re, refused.code, refused.message});
}

bool Session::obey(std::uint64_t id, const policies::FenceAnswer& answer) {
  if (!answer.obey()) {
    refuse(id, {std::string(policies::name(answer.verdict)), answer.message});
    return false;
  }
  if (const Status written = parts_.fence.take(answer); !written.ok()) {
    refuse(id, {"CANNOT_TELL", "the fence cannot be written down: " + written.error().message()});
    return false;
  }
  return true;
}

void Session::take(std::uint64_t id, const protocol::Welcome& message) {
  if (!obey(id, policies::check_term(parts_.fence.state(), message.term))) return;
  heartbeat_ = std::clamp(milliseconds{message.heartbeat_ms}, kShortestBeat, kLongestBeat);
  timer_.cancel();  // the next heartbeat comes now, and from then on at the new pace
  const bool first = !welcome_;
  welcome_ = true;
  if (!first) return;
  platform::log("led by " + channel_->peer().identity.name + " at " + channel_->peer().address + ", term " +
                std::to_string(message.term.count));
  for (const protocol::StageEvent& event : parts_.spool.waiting())
    send(event);
}

void Session::take(std::uint64_t, const protocol::HeartbeatAck&) {
  unanswered_ = 0;
}

void Session::take(std::uint64_t id, const protocol::Verify& message) {
  if (!obey(id, policies::check_verify(parts_.fence.state(), message.term))) return;
  const std::weak_ptr<Session> weak = weak_from_this();
  parts_.verification.start(
      parts_.config, message, check_node(parts_.config, message, parts_.stages.held()),
      [weak](const protocol::VerifyProgress& progress) {
        if (const auto self = weak.lock()) self->send(progress);
      },
      [weak](const protocol::VerifyDone& done) {
        if (const auto self = weak.lock()) self->send(done);
      });
}

void Session::take(std::uint64_t id, const protocol::Audit& message) {
  if (!obey(id, policies::check_verify(parts_.fence.state(), message.term))) return;
  const std::weak_ptr<Session> weak = weak_from_this();
  const bool taken = parts_.verification.audit(
      parts_.config, message,
      [weak](const protocol::VerifyProgress& progress) {
        if (const auto self = weak.lock()) self->send(protocol::AuditProgress{progress});
      },
      [weak](protocol::VerifyDone done) {
        if (const auto self = weak.lock()) self->send(protocol::AuditDone{std::move(done)});
      });
  if (!taken) refuse(id, {"BUSY", "a start's proof of this node runs, and goes first"});
}

void Session::take(std::uint64_t, const protocol::EndAudit& message) {
  parts_.verification.end_audit(message.request);
}

void Session::take(std::uint64_t id, const protocol::StartStage& message) {
  if (const auto refused = parts_.stages.start(message)) refuse(id, *refused);
}

void Session::take(std::uint64_t id, const protocol::StopStage& message) {
  if (const auto refused = parts_.stages.stop(message)) refuse(id, *refused);
}

void Session::take(std::uint64_t id, const protocol::Probe& message) {
  if (!obey(id, policies::check_probe(parts_.fence.state(), message.term, message.replica, message.epoch,
                                      parts_.stages.held())))
    return;
  const auto stage = parts_.stages.serving(message.replica, message.epoch);
  if (!stage || !stage->file()) return refuse(id, {"NOT_READY", "no ready stage of rank 0 is here"});
  const auto adapter = adapters::adapter_for(stage->file()->engine);
  if (!adapter.ok()) return refuse(id, {"NOT_ALLOWED", adapter.error().message()});
  asio::co_spawn(
      parts_.executor,
      [self = shared_from_this(), message, api = stage->file()->api, model = stage->file()->plan.model,
       engine = *adapter] { return self->probe(message, api, model, engine); },
      asio::detached);
}

asio::awaitable<void> Session::probe(protocol::Probe message, std::string api, std::string model,
                                     const adapters::EngineAdapter* adapter) {
  ProbePlan plan{std::move(message), std::move(api), std::move(model), adapter};
  const protocol::ProbeDone done = co_await run_probe(parts_.executor, std::move(plan));
  send(done);
}

void Session::take(std::uint64_t, const protocol::StageEventAck& message) {
  for (const protocol::StageReport& report : parts_.spool.acknowledge(message.event))
    if (report.state == protocol::StageState::Released)
      parts_.stages.acknowledged({{report.replica, report.rank}, report.epoch});
}

void Session::take(std::uint64_t, const protocol::Refusal& message) {
  platform::log("the leader refused: " + message.code + ": " + message.message);
}

}  // namespace troika::agent
