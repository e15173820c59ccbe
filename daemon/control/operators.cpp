#include "daemon/control/operators.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/control/status.hpp"

namespace troika::daemon {

template <protocol::Message T>
void Operators::send(const platform::ChannelPtr& channel, const T& message) {
  channel->send({platform::Frame::Kind::Message, protocol::encode(message, next_message_++)});
}

boost::asio::awaitable<void> Operators::serve(platform::ChannelPtr channel, protocol::Envelope first) {
  take(channel, first);
  while (channel->open()) {
    auto frame = co_await channel->read(waits(channel) ? kSilenceOfWaiting : kSilence);
    if (!frame.ok() || frame->kind != platform::Frame::Kind::Message) break;
    auto envelope = protocol::parse_envelope(frame->payload);
    if (!envelope.ok()) {
      send(channel, protocol::Refusal{0, "MALFORMED", envelope.error().message()});
      co_await channel->flush_and_close(std::chrono::seconds{2});
      break;
    }
    take(channel, *envelope);
  }
  channel->close();
  forget(channel);
}

// Commands go on without who gave them; an audit is for those alone who wait for it.
void Operators::forget(const platform::ChannelPtr& channel) {
  std::erase_if(waiting_, [&](const auto& w) { return w.second.channel == channel; });
  const auto gone = std::erase_if(auditing_, [&](const Auditing& a) { return a.channel == channel; });
  if (gone > 0 && auditing_.empty()) leader_.end_audit();
}

bool Operators::waits(const platform::ChannelPtr& channel) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const auto& waiting) { return waiting.second.channel == channel; }) ||
         std::any_of(auditing_.begin(), auditing_.end(),
                     [&](const Auditing& a) { return a.channel == channel; });
}

void Operators::take(const platform::ChannelPtr& channel, const protocol::Envelope& envelope) {
  bool known = false;
  const auto offer = [&]<class T>(T*) {
    if (known || envelope.type != T::kType) return;
    known = true;
    const auto message = protocol::decode<T>(envelope);
    if (message.ok()) return take(channel, envelope.id, *message);
    send(channel, protocol::Refusal{envelope.id, "MALFORMED", message.error().message()});
  };
  offer(static_cast<protocol::StatusRequest*>(nullptr));
  offer(static_cast<protocol::Command*>(nullptr));
  offer(static_cast<protocol::IncidentsRequest*>(nullptr));
  offer(static_cast<protocol::AuditRequest*>(nullptr));
  if (!known)
    send(channel, protocol::Refusal{envelope.id, "UNKNOWN_TYPE",
                                    "the leader does not know \"" + envelope.type + "\" from an operator"});
}

void Operators::take(const platform::ChannelPtr& channel, std::uint64_t id, const protocol::StatusRequest&) {
  auto reply = status_reply(leader_, gateway_, incidents_, id);
  if (reply.ok()) return send(channel, *reply);
  send(channel, protocol::Refusal{id, "STORE", reply.error().message()});
}

void Operators::take(const platform::ChannelPtr& channel, std::uint64_t id,
                     const protocol::IncidentsRequest& request) {
  auto listed = incidents_.list(request);
  if (listed.ok()) return send(channel, protocol::IncidentsReply{id, std::move(listed).value()});
  send(channel,
       protocol::Refusal{id, request.since.empty() ? "STORE" : "MALFORMED", listed.error().message()});
}

void Operators::take(const platform::ChannelPtr& channel, std::uint64_t id,
                     const protocol::Command& command) {
  if (command.no_wait &&
      (command.replica.empty() || replica_named(leader_.config(), command.replica) != nullptr)) {
    leader_.wish(0, command.verb, command.replica);
    return send(channel,
                protocol::CommandDone{id, Verdict::Ok, "accepted; troika status shows how it goes", {}});
  }
  const auto number = next_command_++;
  waiting_[number] = {channel, id, command.replica, {}, leader_.now()};
  leader_.wish(number, command.verb, command.replica);
}

void Operators::take(const platform::ChannelPtr& channel, std::uint64_t id,
                     const protocol::AuditRequest& request) {
  if (std::any_of(auditing_.begin(), auditing_.end(),
                  [&](const Auditing& a) { return a.channel == channel; }))
    return send(channel, protocol::Refusal{id, "BUSY", "this connection waits for a proof already"});
  if (const Status begun = leader_.begin_audit(request.deep); !begun.ok())
    return send(channel, protocol::Refusal{id, "BUSY", begun.error().message()});
  auditing_.push_back({channel, id});
}

void Operators::audited(protocol::AuditReply reply) {
  for (const Auditing& one : std::exchange(auditing_, {})) {
    reply.re = one.re;
    send(one.channel, reply);
  }
}

void Operators::tell_audits(Instant now) {
  if (!leader_.audit() || now - audits_told_at_ < kProgressPause) return;
  audits_told_at_ = now;
  for (const Auditing& one : auditing_)
    send(one.channel, protocol::AuditStatus{one.re, leader_.audit()->nodes()});
}

void Operators::finished(const policies::FinishCommand& command) {
  const auto found = waiting_.find(command.command);
  if (found == waiting_.end()) return;
  send(found->second.channel,
       protocol::CommandDone{found->second.re, command.verdict, command.text, command.findings});
  waiting_.erase(found);
}

void Operators::tick() {
  const Instant now = leader_.now();
  tell_audits(now);
  for (auto& [number, waiting] : waiting_) {
    if (now - waiting.told_at < kProgressPause) continue;
    std::string line = leader_.progress(waiting.replica);
    if (line == waiting.told) continue;
    send(waiting.channel, protocol::CommandProgress{waiting.re, line});
    waiting.told = std::move(line);
    waiting.told_at = now;
  }
}

}  // namespace troika::daemon
