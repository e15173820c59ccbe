#include "daemon/gateway/upstream.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "platform/clock.hpp"
#include "protocol/codec.hpp"

namespace troika::daemon::gateway {
namespace {

// Silence is judged by whoever waits in next(); this only ends a pump that nobody waits for.
constexpr Duration kAbandoned = std::chrono::hours{2};
constexpr auto kNever = asio::steady_timer::time_point::max();

Over over_of(const protocol::Envelope& envelope) {
  if (envelope.type == protocol::RelayEnd::kType) {
    auto end = protocol::decode<protocol::RelayEnd>(envelope);
    if (!end.ok()) return {false, end.error().message()};
    return {end->complete, std::move(end->error)};
  }
  if (envelope.type == protocol::Refusal::kType) {
    auto refusal = protocol::decode<protocol::Refusal>(envelope);
    if (!refusal.ok()) return {false, refusal.error().message()};
    return {false, "the agent refused: " + refusal->code + ": " + refusal->message};
  }
  return {false, "the agent answered with \"" + envelope.type + "\""};
}

Part part_of(platform::Frame frame) {
  if (frame.kind == platform::Frame::Kind::Raw) return Chunk{std::move(frame.payload)};
  auto envelope = protocol::parse_envelope(frame.payload);
  if (!envelope.ok()) return Over{false, envelope.error().message()};
  if (envelope->type != protocol::RelayHead::kType) return over_of(*envelope);
  auto head = protocol::decode<protocol::RelayHead>(*envelope);
  if (!head.ok()) return Over{false, head.error().message()};
  return std::move(head).value();
}

}  // namespace

Upstream::Upstream(asio::any_io_executor executor, platform::ChannelPtr channel)
    : executor_(std::move(executor)),
      channel_(std::move(channel)),
      filled_(executor_, kNever),
      taken_(executor_, kNever) {}

asio::awaitable<Status> Upstream::pass(protocol::RelayRequest request, std::string_view body,
                                       Duration limit) {
  const auto self = shared_from_this();
  using Kind = platform::Frame::Kind;
  request.body_bytes = Bytes{body.size()};
  // Frames are made before the co_await: g++ 12 destroys an aggregate twice that is made within it.
  platform::Frame head{Kind::Message, protocol::encode(request, 1)};
  auto written = co_await channel_->write(std::move(head), limit);
  while (written.ok() && !body.empty()) {
    const auto piece = body.substr(0, protocol::kMaxRawFrame.count);
    body.remove_prefix(piece.size());
    platform::Frame frame{Kind::Raw, std::string(piece)};
    written = co_await channel_->write(std::move(frame), limit);
  }
  if (!written.ok()) {
    over_ = Over{false, written.error().message()};
    co_return written;
  }
  asio::co_spawn(
      executor_, [self] { return self->pump(); }, asio::detached);
  co_return Done{};
}

asio::awaitable<void> Upstream::pump() {
  const auto self = shared_from_this();
  boost::system::error_code woken;
  while (!over_) {
    if (parts_.size() >= kReadAhead) {
      co_await taken_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      continue;
    }
    auto frame = co_await channel_->read(kAbandoned);
    if (over_) co_return;
    put(frame.ok() ? part_of(std::move(frame).value()) : Part{Over{false, frame.error().message()}});
  }
}

void Upstream::put(Part part) {
  if (const auto* over = std::get_if<Over>(&part)) {
    over_ = *over;
    channel_->close();
  } else {
    parts_.push_back(std::move(part));
  }
  filled_.cancel();
}

asio::awaitable<std::optional<Part>> Upstream::next(Duration limit) {
  const auto self = shared_from_this();
  const auto until = platform::now() + limit;
  while (parts_.empty() && !over_) {
    const auto left = until - platform::now();
    if (left <= Duration::zero()) co_return std::nullopt;
    filled_.expires_after(left);
    boost::system::error_code woken;
    co_await filled_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  if (parts_.empty()) co_return Part{*over_};
  Part part = std::move(parts_.front());
  parts_.pop_front();
  taken_.cancel();
  co_return part;
}

void Upstream::cancel() {
  if (!over_) over_ = Over{false, "cancelled"};
  parts_.clear();
  channel_->close();
  filled_.cancel();
  taken_.cancel();
}

}  // namespace troika::daemon::gateway
