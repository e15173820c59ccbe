#include "cli/client.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <charconv>

#include "platform/channel.hpp"
#include "protocol/codec.hpp"

namespace troika::cli {
namespace {

namespace asio = boost::asio;
using platform::ChannelPtr;
using platform::Frame;

constexpr std::uint64_t kRequestId = 1;  // the only request of its connection

struct Failure {
  Exit status;
  Error error;
  std::string remedy{};
};

// The reply's envelope, or why there is none.
using Outcome = std::variant<protocol::Envelope, Failure>;
// Told of each message that is no reply; false: it does not belong here.
using OnOther = std::function<bool(const protocol::Envelope&)>;

std::string place(const Global& leader) {
  return leader.leader.empty() ? leader.socket : leader.leader;
}

std::string how_to_reach(const Global& leader) {
  if (!leader.leader.empty())
    return "is troikad running there, and does its [leader] listen on this address? Another one is named "
           "with "
           "--leader HOST:PORT";
  return "is troikad running? Another socket is named with --socket PATH or TROIKA_SOCKET, a leader "
         "elsewhere with "
         "--leader HOST:PORT";
}

// A leader takes an agent's certificate for an agent, and would answer about its protocol.
std::optional<Failure> no_operator(const Global& leader, const platform::Identity& identity) {
  if (identity.role == platform::Role::Operator) return std::nullopt;
  Error error{"use the certificate", leader.tls.certificate,
              "it is " + uri(identity) + ", and an operator's certificate is needed"};
  return Failure{kUsage, std::move(error), "make one: troika pki issue --role operator --name NAME"};
}

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};

Result<HostPort> parse_address(const std::string& text) {
  const Error bad{"read the leader's address", text, "host:port is expected"};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad;
  HostPort out{text.substr(0, colon), 0};
  if (out.host.front() == '[' && out.host.back() == ']') out.host = out.host.substr(1, out.host.size() - 2);
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, out.port);
  if (code != std::errc{} || stop != end || out.port == 0) return bad;
  return out;
}

Failure unreachable(const Global& leader, const Error& error) {
  return {kUnreachable, error, how_to_reach(leader)};
}

asio::awaitable<std::variant<ChannelPtr, Failure>> dial(const Global& leader, Duration limit) {
  if (leader.leader.empty()) {
    auto channel = co_await platform::dial_unix(leader.socket, limit);
    if (!channel.ok()) co_return unreachable(leader, channel.error());
    co_return *channel;
  }
  const auto address = parse_address(leader.leader);
  if (!address.ok()) co_return Failure{kUsage, address.error()};
  const auto tls = platform::TlsContext::load(leader.tls);
  if (!tls.ok()) co_return Failure{kUsage, tls.error()};
  auto wrong_role = no_operator(leader, (*tls)->identity());
  if (wrong_role) co_return *std::move(wrong_role);
  auto channel =
      co_await platform::dial_tls(address->host, address->port, *tls, platform::Role::Leader, "", limit);
  if (!channel.ok()) co_return unreachable(leader, channel.error());
  co_return *channel;
}

Failure garbled(const Global& leader, std::string reason) {
  return Failure{kCannotTell, Error{"understand the leader at", place(leader), std::move(reason)}};
}

asio::awaitable<Outcome> converse(Global leader, std::string request, std::string_view reply_type,
                                  OnOther on_other, Duration limit) {
  auto dialled = co_await dial(leader, kAskLimit);
  if (auto* failure = std::get_if<Failure>(&dialled)) co_return *failure;
  const ChannelPtr channel = std::get<ChannelPtr>(dialled);
  channel->send(Frame{Frame::Kind::Message, std::move(request)});
  while (true) {
    const auto frame = co_await channel->read(limit);
    if (!frame.ok()) co_return Failure{kCannotTell, frame.error()};
    if (frame->kind != Frame::Kind::Message) co_return garbled(leader, "it sent a raw frame");
    auto envelope = protocol::parse_envelope(frame->payload);
    if (!envelope.ok()) co_return garbled(leader, envelope.error().message());
    if (envelope->type == protocol::Refusal::kType) {
      const auto refusal = protocol::decode<protocol::Refusal>(*envelope);
      if (!refusal.ok()) co_return garbled(leader, refusal.error().message());
      co_return Failure{kWrong,
                        Error{"do this at", place(leader), refusal->message + " (" + refusal->code + ")"}};
    }
    if (!protocol::is_supported(*envelope))
      co_return garbled(leader, "it speaks version " + std::to_string(envelope->major) + " of the protocol");
    if (envelope->type == reply_type) {
      channel->close();
      co_return *std::move(envelope);
    }
    if (!on_other(*envelope)) co_return garbled(leader, "it sent a message of type " + envelope->type);
  }
}

template <class Reply, class Request>
Answer<Reply> ask(const Global& leader, const Request& request, const OnOther& on_other, Duration limit,
                  const std::function<bool()>& stop = {}) {
  asio::io_context io{1};
  std::optional<Outcome> outcome;
  asio::co_spawn(io, converse(leader, protocol::encode(request, kRequestId), Reply::kType, on_other, limit),
                 [&](const std::exception_ptr& thrown, Outcome got) {
                   if (thrown) {
                     try {
                       std::rethrow_exception(thrown);
                     } catch (const std::exception& e) {
                       got = Failure{kCannotTell, Error{"ask the leader at", place(leader), e.what()}};
                     }
                   }
                   outcome = std::move(got);
                 });
  constexpr auto kAskStopEvery = std::chrono::milliseconds{50};
  while (!outcome && !io.stopped() && !(stop && stop()))
    io.run_for(kAskStopEvery);
  if (!outcome)
    return {std::nullopt, kCannotTell, Error{"wait for the leader at", place(leader), "interrupted"}, {}};
  if (auto* failure = std::get_if<Failure>(&*outcome))
    return {std::nullopt, failure->status, failure->error, failure->remedy};
  auto reply = protocol::decode<Reply>(std::get<protocol::Envelope>(*outcome));
  if (!reply.ok()) return {std::nullopt, kCannotTell, reply.error(), {}};
  return {*std::move(reply), kGood, {}, {}};
}

}  // namespace

Answer<protocol::StatusReply> ask_status(const Global& leader, Duration limit) {
  return ask<protocol::StatusReply>(
      leader, protocol::StatusRequest{}, [](const auto&) { return false; }, limit);
}

Answer<protocol::IncidentsReply> ask_incidents(const Global& leader,
                                               const protocol::IncidentsRequest& request, Duration limit) {
  return ask<protocol::IncidentsReply>(
      leader, request, [](const auto&) { return false; }, limit);
}

namespace {

// Messages of type T are told to `progress` until the reply comes.
template <class T>
OnOther telling(const std::function<void(const T&)>& progress) {
  return [&progress](const protocol::Envelope& envelope) {
    if (envelope.type != T::kType) return false;
    const auto told = protocol::decode<T>(envelope);
    if (told.ok()) progress(*told);
    return told.ok();
  };
}

}  // namespace

Answer<protocol::CommandDone> give_command(const Global& leader, const protocol::Command& command,
                                           const std::function<void(std::string_view)>& progress,
                                           Duration silence, const std::function<bool()>& stop) {
  const std::function<void(const protocol::CommandProgress&)> tell =
      [&](const protocol::CommandProgress& told) { progress(told.text); };
  return ask<protocol::CommandDone>(leader, command, telling(tell), silence, stop);
}

Answer<protocol::AuditReply> ask_audit(const Global& leader, const protocol::AuditRequest& request,
                                       const std::function<void(const protocol::AuditStatus&)>& progress,
                                       Duration silence, const std::function<bool()>& stop) {
  return ask<protocol::AuditReply>(leader, request, telling(progress), silence, stop);
}

}  // namespace troika::cli
