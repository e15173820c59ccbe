#include "daemon/control/doors.hpp"

#include <chrono>
#include <utility>

#include "daemon/cluster/agent_session.hpp"
#include "platform/log.hpp"

namespace troika::daemon {
namespace {

constexpr Duration kFlush = std::chrono::seconds{2};

}  // namespace

boost::asio::awaitable<void> Doors::refuse(platform::ChannelPtr channel, std::uint64_t re, std::string code,
                                           std::string message) {
  const protocol::Refusal refusal{re, std::move(code), std::move(message)};
  platform::log("refused " + channel->peer().address + ": " + refusal.code + ": " + refusal.message);
  channel->send({platform::Frame::Kind::Message, protocol::encode(refusal, 1)});
  co_await channel->flush_and_close(kFlush);
}

boost::asio::awaitable<std::optional<protocol::Envelope>> Doors::first_message(platform::ChannelPtr channel) {
  auto frame = co_await channel->read(kHelloLimit);
  if (!frame.ok()) co_return std::nullopt;
  if (frame->kind != platform::Frame::Kind::Message) {
    co_await refuse(channel, 0, "MALFORMED", "a message is expected");
    co_return std::nullopt;
  }
  auto envelope = protocol::parse_envelope(frame->payload);
  if (!envelope.ok()) {
    co_await refuse(channel, 0, "MALFORMED", envelope.error().message());
    co_return std::nullopt;
  }
  if (!protocol::is_supported(*envelope)) {
    co_await refuse(channel, envelope->id, "VERSION_UNSUPPORTED",
                    "this leader speaks version " + std::to_string(protocol::kMajorVersion) + "." +
                        std::to_string(protocol::kMinorVersion) + ", not " + std::to_string(envelope->major) +
                        "." + std::to_string(envelope->minor));
    co_return std::nullopt;
  }
  co_return std::move(envelope).value();
}

boost::asio::awaitable<void> Doors::serve_remote(platform::ChannelPtr channel) {
  const auto identity = channel->peer().identity;
  if (identity.cluster != leader_.config().cluster)
    co_return co_await refuse(channel, 0, "WRONG_CLUSTER",
                              "the certificate is of cluster " + identity.cluster);
  auto first = co_await first_message(channel);
  if (!first) co_return;
  switch (identity.role) {
    case platform::Role::Agent:
      co_return co_await serve_agent(leader_, std::move(channel), std::move(*first));
    case platform::Role::Operator:
      co_return co_await operators_.serve(std::move(channel), std::move(*first));
    case platform::Role::Leader:
    case platform::Role::Local:
      break;
  }
  co_await refuse(channel, first->id, "CERT_ROLE",
                  "a certificate of role agent or operator is expected, not " + uri(identity));
}

boost::asio::awaitable<void> Doors::serve_local(platform::ChannelPtr channel) {
  auto first = co_await first_message(channel);
  if (!first) co_return;
  if (first->type == protocol::GatewayHello::kType)
    co_return co_await gateway_.serve(std::move(channel), std::move(*first));
  co_await operators_.serve(std::move(channel), std::move(*first));
}

}  // namespace troika::daemon
