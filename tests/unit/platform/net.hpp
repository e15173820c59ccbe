// For tests of connections: a cluster's certificates, and coroutines run to their end.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "platform/channel.hpp"
#include "platform/clock.hpp"
#include "platform/pki.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::platform {

using namespace std::chrono_literals;

inline constexpr Duration kSoon = 5s;  // longer than anything here takes, also under sanitizers
inline constexpr Duration kYear = std::chrono::hours{24 * 365};

// Different from one another: all are held until the last is known. Programs cannot be handed a port that is
// held.
inline std::vector<std::uint16_t> free_ports(std::size_t count) {
  boost::asio::io_context io;
  std::vector<boost::asio::ip::tcp::acceptor> held;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    held.emplace_back(io, boost::asio::ip::tcp::endpoint{boost::asio::ip::make_address("127.0.0.1"), 0});
    ports.push_back(held.back().local_endpoint().port());
  }
  return ports;
}

// Certificates of one cluster, under one authority of its own.
class Certificates {
 public:
  explicit Certificates(const std::string& cluster) : cluster_(cluster) {
    const Status made = make_authority(folder_.path(), cluster, 10 * kYear);
    EXPECT_TRUE(made.ok()) << made.error().message();
  }
  TlsFiles files(Role role, const std::string& name, Duration valid = kYear) {
    return files_of(issue(folder_.path(), Identity{cluster_, role, name}, valid));
  }
  // Of a certificate that was good for the first of the last two hours.
  TlsFiles expired_files(Role role, const std::string& name) {
    return files_of(issue(folder_.path(), Identity{cluster_, role, name}, 1h, wall_now() - 2h));
  }
  std::shared_ptr<TlsContext> context(Role role, const std::string& name) { return load(files(role, name)); }
  static std::shared_ptr<TlsContext> load(const TlsFiles& files) {
    auto context = TlsContext::load(files);
    EXPECT_TRUE(context.ok()) << context.error().message();
    return *context;
  }
  std::string ca() const { return folder_ / "ca.crt"; }
  const Folder& folder() const { return folder_; }

 private:
  TlsFiles files_of(const Result<IssuedFiles>& issued) const {
    EXPECT_TRUE(issued.ok()) << issued.error().message();
    return {ca(), issued->certificate, issued->key};
  }

  Folder folder_;
  std::string cluster_;
};

// Runs a coroutine to its end on the test's own thread; the test fails when it takes too long.
inline void run(asio::io_context& io, asio::awaitable<void> body) {
  std::exception_ptr thrown;
  bool done = false;
  asio::co_spawn(io, std::move(body), [&](std::exception_ptr e) {
    thrown = e;
    done = true;
  });
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!done && std::chrono::steady_clock::now() < end) {
    io.restart();
    io.run_one_for(1s);
  }
  if (!done) throw std::runtime_error("the coroutine does not end");
  if (thrown) std::rethrow_exception(thrown);
}

template <class T>
asio::awaitable<void> keep_result(asio::awaitable<T> body, std::optional<T>& out) {
  out.emplace(co_await std::move(body));
}

template <class T>
T run(asio::io_context& io, asio::awaitable<T> body) {
  std::optional<T> result;
  run(io, keep_result(std::move(body), result));
  return *std::move(result);
}

inline asio::awaitable<void> pause(Duration time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

// Until the condition holds; false: it never came, which only a broken product's does.
inline asio::awaitable<bool> until(std::function<bool()> condition) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!condition() && std::chrono::steady_clock::now() < end)
    co_await pause(2ms);
  co_return condition();
}

inline Frame message(std::string payload) {
  return {Frame::Kind::Message, std::move(payload)};
}
inline Frame raw(std::string payload) {
  return {Frame::Kind::Raw, std::move(payload)};
}

// Sends every frame back until the peer closes.
inline asio::awaitable<void> echo(ChannelPtr channel) {
  while (true) {
    auto frame = co_await channel->read(kSoon);
    if (!frame.ok()) co_return;
    channel->send(*std::move(frame));
  }
}

}  // namespace troika::platform
