#include <boost/asio/connect.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "platform/channel.hpp"
#include "platform/deadline.hpp"
#include "platform/streams.hpp"

namespace troika::platform {
namespace {

using Tcp = asio::ip::tcp;
using Addresses = std::vector<Tcp::endpoint>;

constexpr const char* kTooLate = "no answer in time";

// Time left of a limit, for one step after another.
class TimeLeft {
 public:
  explicit TimeLeft(Duration limit) : end_(asio::steady_timer::clock_type::now() + limit) {}
  Duration now() const {
    return std::max<Duration>(end_ - asio::steady_timer::clock_type::now(), Duration::zero());
  }

 private:
  asio::steady_timer::time_point end_;
};

// The system's name look-up cannot be cancelled: it is left to end by itself when the limit passes.
asio::awaitable<Result<Addresses>> resolve(std::string host, std::uint16_t port, Duration limit) {
  boost::system::error_code failed;
  if (const auto literal = asio::ip::make_address(host, failed); !failed)
    co_return Addresses{Tcp::endpoint(literal, port)};
  const auto executor = co_await asio::this_coro::executor;
  struct LookUp {
    explicit LookUp(const asio::any_io_executor& executor) : resolver(executor), done(executor) {}
    Tcp::resolver resolver;
    asio::steady_timer done;
    bool ended = false;
    boost::system::error_code error;
    Addresses addresses;
  };
  const auto look_up = std::make_shared<LookUp>(executor);
  look_up->done.expires_after(limit);
  look_up->resolver.async_resolve(
      host, std::to_string(port),
      [look_up](boost::system::error_code error, Tcp::resolver::results_type found) {
        look_up->ended = true;
        look_up->error = error;
        for (const auto& entry : found)
          look_up->addresses.push_back(entry.endpoint());
        look_up->done.cancel();
      });
  co_await look_up->done.async_wait(asio::redirect_error(asio::use_awaitable, failed));
  if (!look_up->ended) {
    look_up->resolver.cancel();
    co_return Error{"look up", host, kTooLate};
  }
  if (look_up->error) co_return Error{"look up", host, look_up->error.message()};
  co_return look_up->addresses;
}

}  // namespace

asio::awaitable<Result<ChannelPtr>> dial_tls(std::string host, std::uint16_t port,
                                             std::shared_ptr<TlsContext> tls, Role role, std::string name,
                                             Duration limit) {
  const TimeLeft left(limit);
  const auto executor = co_await asio::this_coro::executor;
  const auto addresses = co_await resolve(host, port, left.now());
  if (!addresses.ok()) co_return addresses.error();
  const std::string wanted =
      (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port);

  const auto socket = std::make_shared<Tcp::socket>(executor);
  boost::system::error_code failed;
  {
    const Deadline deadline(executor, left.now(), [socket] {
      boost::system::error_code ignored;
      socket->close(ignored);
    });
    // Not asio::async_connect: it would open the socket anew after the deadline closed it, and try the next
    // address.
    for (const Tcp::endpoint& address : *addresses) {
      boost::system::error_code ignored;
      socket->close(ignored);
      co_await socket->async_connect(address, asio::redirect_error(asio::use_awaitable, failed));
      if (!failed || deadline.expired()) break;
    }
    if (deadline.expired()) co_return Error{"connect to", wanted, kTooLate};
  }
  if (failed) co_return Error{"connect to", wanted, failed.message()};
  set_tcp_options(*socket);
  const Tcp::endpoint remote = socket->remote_endpoint(failed);
  if (failed) co_return Error{"connect to", wanted, failed.message()};

  auto stream = std::make_shared<TlsStream>(std::move(*socket), tls->context());
  const auto identity = co_await handshake(stream, asio::ssl::stream_base::client, tls, wanted, left.now());
  if (!identity.ok()) co_return identity.error();
  if (identity->role != role || (!name.empty() && identity->name != name))
    co_return Error{"trust", wanted,
                    "it is " + uri(*identity) + ", expected " + std::string(platform::name(role)) +
                        (name.empty() ? "" : " " + name)};
  Peer peer{*identity, text(remote), 0};
  co_return make_channel(std::move(stream), std::move(peer), nullptr);
}

asio::awaitable<Result<ChannelPtr>> dial_unix(std::string path, Duration limit) {
  const auto endpoint = unix_endpoint(path);
  if (!endpoint.ok()) co_return endpoint.error();
  const auto executor = co_await asio::this_coro::executor;
  const auto socket = std::make_shared<UnixSocket>(executor);
  boost::system::error_code failed;
  {
    const Deadline deadline(executor, limit, [socket] {
      boost::system::error_code ignored;
      socket->close(ignored);
    });
    co_await socket->async_connect(*endpoint, asio::redirect_error(asio::use_awaitable, failed));
    if (deadline.expired()) co_return Error{"connect to", path, kTooLate};
  }
  if (failed) co_return Error{"connect to", path, failed.message()};
  auto peer = unix_peer(*socket, path, {});
  if (!peer.ok()) co_return peer.error();
  co_return make_channel(std::move(*socket), *std::move(peer), nullptr);
}

}  // namespace troika::platform
