#include "agent/relay.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "agent/http/exchange.hpp"
#include "platform/log.hpp"
#include "protocol/codec.hpp"

namespace troika::agent {
namespace {

namespace asio = boost::asio;
using platform::Frame;

constexpr std::chrono::seconds kRequestLimit{
    10};                                         // of the gateway, for its request and each frame of the body
constexpr std::chrono::seconds kWriteLimit{60};  // a gateway that takes nothing for so long is given up
// The gateway judges stalls (it sees the client) and closes; these only keep a forgotten connection from
// staying.
constexpr std::chrono::hours kHeadLimit{1};
constexpr std::chrono::hours kPieceLimit{1};

template <protocol::Message T>
Frame frame_of(const T& message) {
  return {Frame::Kind::Message, protocol::encode(message, 1)};
}

// g++ 12 destroys an aggregate twice that is made within a co_await expression: refusals, frames and requests
// are made before it.
asio::awaitable<void> refuse(platform::ChannelPtr channel, std::uint64_t re, Refused refused) {
  platform::log("relay refused to " + channel->peer().address + ": " + refused.code + ": " + refused.message);
  channel->send(frame_of(protocol::Refusal{re, refused.code, refused.message}));
  co_await channel->flush_and_close(std::chrono::seconds{2});
}

// The gateway has nothing more to say: whatever comes, or its going away, ends the exchange.
asio::awaitable<void> cancel_when_closed(platform::ChannelPtr channel,
                                         std::shared_ptr<HttpExchange> exchange) {
  (void)co_await channel->read(kHeadLimit + kPieceLimit);
  exchange->cancel();
}

class Counted {
 public:
  explicit Counted(std::shared_ptr<std::size_t> count) : count_(std::move(count)) { ++*count_; }
  Counted(const Counted&) = delete;
  ~Counted() { --*count_; }

 private:
  // Shared: a connection that is dropped with the reactor goes after the relay itself.
  std::shared_ptr<std::size_t> count_;
};

}  // namespace

std::optional<Refused> Relay::judge(const platform::Peer& peer, const protocol::RelayRequest& request,
                                    std::string& api) const {
  if (peer.identity.role != platform::Role::Leader)
    return Refused{"CERT_ROLE", "the relay is for the leader's gateway; this certificate has role " +
                                    std::string(platform::name(peer.identity.role))};
  if (*open_ > kMostAtOnce) return Refused{"BUSY", "64 requests are being relayed already"};
  if (request.body_bytes > kLargestBody) return Refused{"MALFORMED", "the body is longer than 4 MiB"};
  const auto stage = stages_.serving(request.replica, request.epoch);
  if (!stage || !stage->file())
    return Refused{"STALE_EPOCH", "no ready stage of rank 0 of " + request.replica + ", epoch " +
                                      std::to_string(request.epoch.count) + ", is here"};
  const auto adapter = adapters::adapter_for(stage->file()->engine);
  if (!adapter.ok() || !(*adapter)->relays(request.method, request.path))
    return Refused{"NOT_ALLOWED", request.method + " " + request.path + " is not relayed"};
  api = stage->file()->api;
  return std::nullopt;
}

asio::awaitable<std::optional<Relay::Accepted>> Relay::accept(platform::ChannelPtr channel) {
  const auto first = co_await channel->read(kRequestLimit);
  if (!first.ok()) co_return std::nullopt;
  const auto envelope = first->kind == Frame::Kind::Message
                            ? protocol::parse_envelope(first->payload)
                            : Result<protocol::Envelope>{Error{"read the request", "", "a raw frame"}};
  if (!envelope.ok()) {
    Refused refused{"MALFORMED", envelope.error().message()};
    co_await refuse(channel, 0, std::move(refused));
    co_return std::nullopt;
  }
  if (!protocol::is_supported(*envelope)) {
    Refused refused{"VERSION_UNSUPPORTED",
                    "protocol " + std::to_string(protocol::kMajorVersion) + " is spoken here"};
    co_await refuse(channel, envelope->id, std::move(refused));
    co_return std::nullopt;
  }
  if (envelope->type != protocol::RelayRequest::kType) {
    Refused refused{"UNKNOWN_TYPE", "a relay begins with relay_request"};
    co_await refuse(channel, envelope->id, std::move(refused));
    co_return std::nullopt;
  }
  const auto request = protocol::decode<protocol::RelayRequest>(*envelope);
  if (!request.ok()) {
    Refused refused{"MALFORMED", request.error().message()};
    co_await refuse(channel, envelope->id, std::move(refused));
    co_return std::nullopt;
  }
  Accepted accepted{*request, {}};
  if (auto refused = judge(channel->peer(), *request, accepted.api)) {
    co_await refuse(channel, envelope->id, std::move(*refused));
    co_return std::nullopt;
  }
  co_return accepted;
}

asio::awaitable<void> Relay::serve(platform::ChannelPtr channel) {
  const Counted counted{open_};
  auto accepted = co_await accept(channel);
  if (accepted) co_await pass_on(channel, *std::move(accepted));
  channel->close();
}

asio::awaitable<void> Relay::pass_on(platform::ChannelPtr channel, Accepted accepted) {
  HttpRequest request{accepted.request.method, accepted.request.path, {}, {}};
  while (request.body.size() < accepted.request.body_bytes.count) {
    auto frame = co_await channel->read(kRequestLimit);
    if (!frame.ok()) co_return;
    if (frame->kind != Frame::Kind::Raw ||
        request.body.size() + frame->payload.size() > accepted.request.body_bytes.count) {
      Refused refused{"MALFORMED", "the body is not as long as was said"};
      co_return co_await refuse(channel, 0, std::move(refused));
    }
    request.body += frame->payload;
  }
  if (!request.body.empty()) request.content_type = "application/json";

  const auto exchange = make_exchange(executor_, accepted.api);
  asio::co_spawn(executor_, cancel_when_closed(channel, exchange), asio::detached);
  protocol::RelayEnd end;
  const auto head = co_await exchange->begin(std::move(request), kHeadLimit);
  if (head.ok()) {
    channel->send(frame_of(protocol::RelayHead{head->status, head->content_type}));
    while (true) {
      auto piece = co_await exchange->next(kPieceLimit);
      if (!piece.ok()) {
        end.error = piece.error().message();
        break;
      }
      if (!*piece) {
        end.complete = true;
        break;
      }
      // Waits for the gateway, and with it the engine's socket: nothing piles up here.
      Frame frame{Frame::Kind::Raw, **std::move(piece)};
      const Status sent = co_await channel->write(std::move(frame), kWriteLimit);
      if (!sent.ok()) break;
    }
  } else {
    end.error = head.error().message();
  }
  exchange->cancel();
  if (!channel->open()) co_return;
  channel->send(frame_of(end));
  co_await channel->flush_and_close(std::chrono::seconds{10});
}

}  // namespace troika::agent
