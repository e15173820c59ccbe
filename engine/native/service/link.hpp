// Authenticated connections between neighbouring stages.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "engine/native/service/handshake.hpp"
#include "engine/native/service/wire.hpp"

namespace troika::native {

// HOST:PORT or [v6]:PORT.
struct HostPort {
  std::string host;
  std::string port;
};
Result<HostPort> parse_host_port(std::string_view text);
std::string text(const boost::asio::ip::tcp::endpoint& endpoint);

// First address of the name. Error: none.
Result<boost::asio::ip::tcp::endpoint> resolve(boost::asio::io_context& io, const HostPort& where);

// Opens the acceptor and returns where it is bound (a port 0 is chosen by the system).
Result<boost::asio::ip::tcp::endpoint> listen_on(boost::asio::ip::tcp::acceptor& acceptor,
                                                 boost::asio::io_context& io, const HostPort& where,
                                                 int backlog);

// Called once, with why the link ended; the process has no use without it.
using LinkLost = std::function<void(std::string reason)>;

// Listens for the previous stage until it has come, and refuses everyone else.
class LinkListener {
 public:
  using Opened = std::function<void(boost::asio::ip::tcp::socket)>;

  // expected: the hello as the previous stage must send it. opened is called once.
  LinkListener(boost::asio::io_context& io, Hello expected, LinkKey key, Opened opened);
  Status listen(const HostPort& where);
  boost::asio::ip::tcp::endpoint endpoint() const { return endpoint_; }
  void close();

 private:
  struct Guest;
  boost::asio::awaitable<void> accept_all();
  boost::asio::awaitable<void> receive(std::shared_ptr<Guest> guest);
  void log_refusal(const std::string& remote, const std::string& reason);

  boost::asio::io_context& io_;
  Hello expected_;
  LinkKey key_;
  Opened opened_;
  bool open_ = false;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::endpoint endpoint_;
  std::list<std::weak_ptr<Guest>> guests_;  // in the handshake, oldest first
  std::string last_refusal_;
  std::uint64_t refusals_ = 0;  // in a row with this reason
};

// Dials the next stage until it answers as it should; logs each new reason why it does not. Ends when io
// stops.
boost::asio::awaitable<std::shared_ptr<boost::asio::ip::tcp::socket>> dial_link(boost::asio::io_context& io,
                                                                                HostPort where, Hello hello,
                                                                                LinkKey key);

// Frames to the next stage, in order.
class LinkWriter : public std::enable_shared_from_this<LinkWriter> {
 public:
  LinkWriter(boost::asio::ip::tcp::socket socket, LinkLost lost);
  void start();
  // Losing the link is reported through `lost`, also when more frames wait than can be in flight.
  void send(std::string frame);

 private:
  void write();
  boost::asio::awaitable<void> watch();
  void lose(std::string reason);

  boost::asio::ip::tcp::socket socket_;
  LinkLost lost_;
  std::deque<std::string> queue_;
};

// Frames from the previous stage, read as they come, so that the end of the link is seen at once. How many
// may wait is the business of who takes them.
class LinkReader : public std::enable_shared_from_this<LinkReader> {
 public:
  using Take = std::function<void(FrameKind kind, const std::string& payload)>;

  LinkReader(boost::asio::ip::tcp::socket socket, WireLimits limits, Take take, LinkLost lost);
  void start() { read(); }

 private:
  void read();
  void read_payload(FrameHeader header);
  void lose(std::string reason);

  boost::asio::ip::tcp::socket socket_;
  WireLimits limits_;
  Take take_;
  LinkLost lost_;
  std::string header_;
  std::string payload_;
};

}  // namespace troika::native
