#include "daemon/cluster/agent_session.hpp"

#include <algorithm>
#include <utility>

#include "platform/log.hpp"

namespace troika::daemon {
namespace {

class ChannelLine final : public AgentLine {
 public:
  explicit ChannelLine(platform::ChannelPtr channel) : channel_(std::move(channel)) {}
  void send(std::string message) override {
    channel_->send({platform::Frame::Kind::Message, std::move(message)});
  }
  void close() override { channel_->close(); }

 private:
  platform::ChannelPtr channel_;
};

boost::asio::awaitable<void> refuse(platform::ChannelPtr channel, std::uint64_t re, std::string code,
                                    std::string message) {
  const protocol::Refusal refusal{re, std::move(code), std::move(message)};
  platform::log("refused " + channel->peer().address + " (" + uri(channel->peer().identity) +
                "): " + refusal.code + ": " + refusal.message);
  channel->send({platform::Frame::Kind::Message, protocol::encode(refusal, 1)});
  co_await channel->flush_and_close(std::chrono::seconds{2});
}

}  // namespace

std::optional<protocol::Refusal> check_hello(const protocol::Hello& hello, const platform::Peer& peer,
                                             const config::ClusterConfig& config, std::uint64_t id) {
  const auto refusal = [&](std::string code, std::string message) {
    return protocol::Refusal{id, std::move(code), std::move(message)};
  };
  if (hello.cluster != config.cluster)
    return refusal("WRONG_CLUSTER", "this leads cluster " + config.cluster + ", not " + hello.cluster);
  if (hello.node != peer.identity.name)
    return refusal("CERT_ROLE", "the certificate is " + peer.identity.name + "'s, not " + hello.node + "'s");
  const bool known = std::any_of(config.nodes.begin(), config.nodes.end(),
                                 [&](const config::NodeConfig& node) { return node.name == hello.node; });
  if (!known) return refusal("UNKNOWN_NODE", "cluster.toml has no node " + hello.node);
  return std::nullopt;
}

boost::asio::awaitable<void> serve_agent(Leader& leader, platform::ChannelPtr channel,
                                         protocol::Envelope first) {
  if (first.type != protocol::Hello::kType)
    co_return co_await refuse(channel, first.id, "HELLO_FIRST", "an agent begins with hello");
  auto hello = protocol::decode<protocol::Hello>(first);
  if (!hello.ok()) co_return co_await refuse(channel, first.id, "MALFORMED", hello.error().message());
  if (auto refusal = check_hello(*hello, channel->peer(), leader.config(), first.id))
    co_return co_await refuse(channel, refusal->re, refusal->code, refusal->message);
  if (const auto taken = leader.name_taken(*hello, channel->peer().address))
    co_return co_await refuse(channel, first.id, "NAME_TAKEN", *taken);
  const std::string node = hello->node;
  const auto session = leader.connected(std::make_shared<ChannelLine>(channel), std::move(hello).value());
  while (true) {
    auto frame = co_await channel->read(kAgentSilence);
    if (!frame.ok()) break;
    if (frame->kind != platform::Frame::Kind::Message) break;
    auto envelope = protocol::parse_envelope(frame->payload);
    if (!envelope.ok()) {
      platform::log(node + " sends what is no message: " + envelope.error().message());
      break;
    }
    if (!protocol::is_supported(*envelope)) {
      co_await refuse(channel, envelope->id, "VERSION_UNSUPPORTED",
                      "another version than the one it began with");
      break;
    }
    if (!leader.received(node, session, *envelope)) break;
  }
  channel->close();
  leader.disconnected(node, session);
}

}  // namespace troika::daemon
