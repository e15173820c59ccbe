// The other end of the gateway's relay: a listener over real TLS that plays an agent, with scripted answers.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "platform/channel.hpp"
#include "platform/clock.hpp"
#include "protocol/codec.hpp"

namespace troika::daemon {

namespace asio = boost::asio;

// What arrived at the agent.
struct Arrival {
  Instant at;
  protocol::RelayRequest request;
  std::string body;
};

// Holds a script until the test lets it go on. Declared before the agent, so that it outlives the script.
class Gate {
 public:
  void open() { open_ = true; }
  asio::awaitable<void> opened() const {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (!open_) {
      timer.expires_after(std::chrono::milliseconds{2});
      co_await timer.async_wait(asio::use_awaitable);
    }
  }

 private:
  std::atomic<bool> open_ = false;
};

class FakeAgent {
 public:
  // Answers one request; when it returns the connection is closed.
  using Script = std::function<asio::awaitable<void>(platform::ChannelPtr)>;

  FakeAgent(asio::io_context& io, std::shared_ptr<platform::TlsContext> tls, Script script)
      : script_(std::move(script)) {
    auto listener = platform::listen_tls(io.get_executor(), "127.0.0.1", 0, std::move(tls),
                                         [this](platform::ChannelPtr c) { return serve(std::move(c)); });
    TROIKA_INVARIANT(listener.ok());
    listener_ = std::move(listener).value();
    port_ = listener_->port();
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::vector<Arrival> arrivals() const {
    const std::lock_guard guard(mutex_);
    return arrivals_;
  }
  std::size_t cancelled() const {
    const std::lock_guard guard(mutex_);
    return cancelled_;
  }
  void script(Script script) {
    const std::lock_guard guard(mutex_);
    script_ = std::move(script);
  }
  // On the io_context's thread.
  void stop() { listener_.reset(); }

  static void head(const platform::ChannelPtr& channel, unsigned status, std::string type) {
    const protocol::RelayHead head{status, std::move(type)};
    channel->send({platform::Frame::Kind::Message, protocol::encode(head, 1)});
  }
  static void data(const platform::ChannelPtr& channel, std::string bytes) {
    channel->send({platform::Frame::Kind::Raw, std::move(bytes)});
  }
  static void end(const platform::ChannelPtr& channel, bool complete, std::string error = {}) {
    const protocol::RelayEnd end{complete, std::move(error)};
    channel->send({platform::Frame::Kind::Message, protocol::encode(end, 2)});
  }
  static asio::awaitable<void> pause(Duration time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::use_awaitable);
  }
  // Waits until the gateway closes its side.
  asio::awaitable<void> until_closed(platform::ChannelPtr channel) {
    auto frame = co_await channel->read(std::chrono::seconds{30});
    const std::lock_guard guard(mutex_);
    if (!frame.ok()) ++cancelled_;
  }

 private:
  asio::awaitable<void> serve(platform::ChannelPtr channel) {
    auto first = co_await channel->read(std::chrono::seconds{20});
    if (!first.ok()) co_return;
    auto envelope = protocol::parse_envelope(first->payload);
    if (!envelope.ok()) co_return;
    auto request = protocol::decode<protocol::RelayRequest>(*envelope);
    if (!request.ok()) co_return;
    Arrival arrival;
    arrival.at = platform::now();
    arrival.request = *request;
    while (arrival.body.size() < request->body_bytes.count) {
      auto piece = co_await channel->read(std::chrono::seconds{20});
      if (!piece.ok()) co_return;
      arrival.body += piece->payload;
    }
    Script script;
    {
      const std::lock_guard guard(mutex_);
      arrivals_.push_back(std::move(arrival));
      script = script_;
    }
    co_await script(channel);
    co_await channel->flush_and_close(std::chrono::seconds{5});
  }

  mutable std::mutex mutex_;
  Script script_;
  std::unique_ptr<platform::Listener> listener_;
  std::uint16_t port_ = 0;
  std::vector<Arrival> arrivals_;
  std::size_t cancelled_ = 0;
};

}  // namespace troika::daemon
