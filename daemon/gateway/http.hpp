// HTTP/1.1 for the gateway's public side: a server with limits on everything, and one exchange as its handler
// sees it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon::gateway {

namespace asio = boost::asio;

struct HttpLimits {
  // Beyond: the one that holds no request for the longest time (idle, or its head not yet whole) is closed
  // for the new one; where all of them hold one, new ones wait to be accepted.
  std::size_t connections = 1024;
  // Of these, of one remote address (IPv6: of one /64): beyond, one of its own is closed for its new one, or,
  // where all of them hold a request, the new one is answered 503. Loopback is more than one client: a proxy.
  std::size_t per_address = 256;
  std::size_t loopback = 768;
  std::uint32_t header_bytes = 16u << 10;
  std::size_t body_bytes = 4u << 20;
  // Of all requests being read or waiting for an answer together; beyond, 503 before the body is read.
  std::size_t bodies_bytes = 128u << 20;
  Duration header = std::chrono::seconds{10};  // from its first byte to its last
  Duration body = std::chrono::seconds{30};
  Duration idle = std::chrono::seconds{30};   // between two requests of a connection
  Duration write = std::chrono::seconds{30};  // a client that takes no byte for so long is gone
};

struct HttpRequest {
  std::string method;
  std::string path;  // without the query
  std::string body;
};

struct HttpAnswer {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  bool close = false;  // the connection, after this answer
};

// One request and its answer. The answer is either whole (answer) or a stream (begin_stream, piece...,
// end_stream). An error of a write means that the client is gone.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;
  virtual asio::awaitable<Status> answer(HttpAnswer answer) = 0;
  virtual asio::awaitable<Status> begin_stream(unsigned status, std::string content_type) = 0;
  virtual asio::awaitable<Status> piece(std::string bytes) = 0;
  // close: no further request on this connection.
  virtual asio::awaitable<Status> end_stream(bool close) = 0;
  // Called once when the client closes its side while the request is being handled; empty: nobody listens any
  // more.
  virtual void on_gone(std::function<void()> gone) = 0;
  virtual bool gone() const = 0;
};

class HttpServer {
 public:
  using Handler = std::function<asio::awaitable<void>(Exchange&)>;

  virtual ~HttpServer() = default;
  virtual std::uint16_t port() const = 0;
  virtual std::size_t connections() const = 0;
  virtual std::size_t bodies_bytes() const = 0;  // held of HttpLimits::bodies_bytes by requests in hand
  virtual void stop_accepting() = 0;             // also closes idle connections; requests in hand go on
};

// host:port; port 0 picks a free one. Errors name the address.
Result<std::unique_ptr<HttpServer>> listen_http(asio::any_io_executor executor, const std::string& host,
                                                std::uint16_t port, HttpServer::Handler handler,
                                                HttpLimits limits = {});

}  // namespace troika::daemon::gateway
