#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "daemon/gateway/answers.hpp"
#include "daemon/gateway/http_connection.hpp"
#include "platform/log.hpp"

namespace troika::daemon::gateway {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

// Closes idle connections or waits until there is room for one more.
asio::awaitable<void> make_room(std::shared_ptr<HttpCore> core) {
  while (core->connections >= core->limits.connections && core->accepting) {
    if (!core->idle.empty()) {
      core->idle.front()->close();
      continue;
    }
    error_code ignored;
    co_await core->room.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

// Whether one more connection of this client is within its share, after one of its idle ones was closed for
// it.
bool make_share(HttpCore& core, const asio::ip::address& client) {
  const auto taken = core.addresses.find(client);
  const auto share = client.is_loopback() ? core.limits.loopback : core.limits.per_address;
  if (taken == core.addresses.end() || taken->second < share) return true;
  const auto own = std::find_if(core.idle.begin(), core.idle.end(),
                                [&](const Connection* c) { return c->client() == client; });
  if (own == core.idle.end()) return false;
  (*own)->close();
  return true;
}

// A connection beyond its client's share: what the socket takes at once is all it gets.
void turn_away(tcp::socket& socket) {
  const auto answer = error_answer(Trouble::Overloaded, "too many connections of one address", 1);
  const std::string text =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
      "Connection: close\r\nContent-Length: " +
      std::to_string(answer.body.size()) + "\r\n\r\n" + answer.body;
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

// By value: what it uses lives as long as it does.
asio::awaitable<void> accept_all(std::shared_ptr<HttpCore> core, std::shared_ptr<tcp::acceptor> acceptor) {
  while (core->accepting) {
    error_code error;
    co_await acceptor->async_wait(tcp::acceptor::wait_read, asio::redirect_error(asio::use_awaitable, error));
    if (!core->accepting) co_return;
    tcp::socket socket(acceptor->get_executor());
    if (!error) acceptor->accept(socket, error);
    if (!core->accepting || error == asio::error::operation_aborted) co_return;
    if (error) {
      if (error == asio::error::would_block || error == asio::error::try_again ||
          error == asio::error::connection_aborted)
        continue;
      // Out of file descriptors or memory: those in hand end and give some back.
      platform::log("cannot accept HTTP connections: " + error.message());
      asio::steady_timer pause(acceptor->get_executor(), std::chrono::milliseconds{200});
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    const auto remote = socket.remote_endpoint(error);
    if (error) continue;  // it went already
    const auto client = client_of(remote.address());
    if (!make_share(*core, client)) {
      turn_away(socket);
      continue;
    }
    // Only now: a client beyond its share closes nobody else's connection.
    co_await make_room(core);
    if (!core->accepting) co_return;
    auto connection = std::make_shared<Connection>(core, std::move(socket), client);
    asio::co_spawn(
        acceptor->get_executor(), [connection] { return connection->run(); }, asio::detached);
  }
}

class Server final : public HttpServer {
 public:
  Server(std::shared_ptr<HttpCore> core, std::shared_ptr<tcp::acceptor> acceptor)
      : core_(std::move(core)), acceptor_(std::move(acceptor)) {}
  ~Server() override { stop_accepting(); }

  std::uint16_t port() const override { return port_; }
  std::size_t connections() const override { return core_->connections; }
  std::size_t bodies_bytes() const override { return core_->bodies_bytes; }

  void stop_accepting() override {
    if (!std::exchange(core_->accepting, false)) return;
    error_code ignored;
    acceptor_->close(ignored);
    core_->room.cancel();
    while (!core_->idle.empty())
      core_->idle.front()->close();
  }

  void start() {
    port_ = acceptor_->local_endpoint().port();
    asio::co_spawn(acceptor_->get_executor(), accept_all(core_, acceptor_), asio::detached);
  }

 private:
  std::shared_ptr<HttpCore> core_;
  std::shared_ptr<tcp::acceptor> acceptor_;
  std::uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> listen_http(asio::any_io_executor executor, const std::string& host,
                                                std::uint16_t port, HttpServer::Handler handler,
                                                HttpLimits limits) {
  const auto failed = [&](const error_code& error) {
    return Error{"listen for HTTP on", host + ":" + std::to_string(port), error.message()};
  };
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  tcp::endpoint endpoint{address, port};
  if (error) {
    // A name: at a start, before anything is served, waiting for the resolver harms nobody.
    tcp::resolver resolver(executor);
    const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
    if (error) return failed(error);
    endpoint = *found.begin();
  }
  auto acceptor = std::make_shared<tcp::acceptor>(executor);
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor->non_blocking(true, error);
  if (error) return failed(error);
  auto server = std::make_unique<Server>(std::make_shared<HttpCore>(executor, std::move(handler), limits),
                                         std::move(acceptor));
  server->start();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace troika::daemon::gateway
