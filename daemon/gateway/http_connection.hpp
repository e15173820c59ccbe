// One client's connection to the gateway, and what all connections of a server share. Private to http_*.cpp.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/gateway/http.hpp"

namespace troika::daemon::gateway {

class Connection;

// Shared by a server and its connections; outlives both.
struct HttpCore {
  HttpCore(const asio::any_io_executor& executor, HttpServer::Handler served, HttpLimits bounds)
      : handler(std::move(served)), limits(bounds), room(executor) {
    room.expires_at(asio::steady_timer::time_point::max());
  }

  HttpServer::Handler handler;
  HttpLimits limits;
  asio::steady_timer room;  // cancelled whenever a connection ends
  std::size_t connections = 0;
  std::map<asio::ip::address, std::size_t> addresses;  // connections of each, by client_of()
  std::size_t bodies_bytes = 0;                        // reserved by requests in hand
  std::list<Connection*> idle;                         // hold no request; the longest so first
  bool accepting = true;
};

// Whose share a connection counts for: the remote address, of IPv6 its /64.
asio::ip::address client_of(const asio::ip::address& remote);

class Connection : public Exchange, public std::enable_shared_from_this<Connection> {
 public:
  // client: as of client_of().
  Connection(std::shared_ptr<HttpCore> core, asio::ip::tcp::socket socket, asio::ip::address client);
  ~Connection() override;

  // Serves requests until either side closes.
  asio::awaitable<void> run();
  // Cancels whatever it waits for, and gives up its place among the connections; idempotent.
  void close();
  const asio::ip::address& client() const { return client_; }

  const HttpRequest& request() const override { return request_; }
  asio::awaitable<Status> answer(HttpAnswer answer) override;
  asio::awaitable<Status> begin_stream(unsigned status, std::string content_type) override;
  asio::awaitable<Status> piece(std::string bytes) override;
  asio::awaitable<Status> end_stream(bool close) override;
  void on_gone(std::function<void()> gone) override;
  bool gone() const override { return gone_; }

 private:
  class Reader;  // the parser and its buffer: the only part that knows Beast

  asio::awaitable<bool> wait_for_request();
  asio::awaitable<bool> read_request();
  asio::awaitable<bool> read_body();
  asio::awaitable<bool> refuse(HttpAnswer answer);  // false, after the answer is sent
  asio::awaitable<void> handle();
  asio::awaitable<void> watch(std::uint64_t number);
  asio::awaitable<Status> write(std::string bytes);
  asio::awaitable<void> linger();
  void cancel();             // what is awaited on the socket
  void set_idle(bool idle);  // listed in core_->idle
  void leave();              // the counts of connections

  std::shared_ptr<HttpCore> core_;
  asio::ip::tcp::socket socket_;
  asio::ip::address client_;
  std::optional<std::list<Connection*>::iterator> idle_;
  std::unique_ptr<Reader> reader_;
  HttpRequest request_;
  std::size_t reserved_ = 0;  // of core_->bodies_bytes
  std::uint64_t number_ = 0;  // of the request in hand; a watcher of an earlier one does nothing
  std::function<void()> on_gone_;
  bool counted_ = true;  // by core_
  bool keep_alive_ = false;
  bool http10_ = false;
  bool answered_ = false;  // the first byte of an answer was written
  bool gone_ = false;
};

}  // namespace troika::daemon::gateway
