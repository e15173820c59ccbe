#include "engine/native/service/link.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <charconv>

namespace troika::native {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// More than can ever be in flight: one frame a step, and few steps at a time.
constexpr std::size_t kMostFrames = 4096;

std::string reason_of(const boost::system::error_code& error) {
  return error == asio::error::eof ? "it closed the connection" : error.message();
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  const Error fault{"read", std::string(text), "must be HOST:PORT"};
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return fault;
  auto host = text.substr(0, colon);
  const auto port = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return fault;
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || error != std::errc() || end != port.data() + port.size() || number > 65535)
    return fault;
  return HostPort{std::string(host), std::string(port)};
}

std::string text(const tcp::endpoint& endpoint) {
  const auto address = endpoint.address().to_string();
  const auto port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

Result<tcp::endpoint> resolve(asio::io_context& io, const HostPort& where) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(where.host, error);
  unsigned short port = 0;
  std::from_chars(where.port.data(), where.port.data() + where.port.size(), port);
  if (!error) return tcp::endpoint(address, port);
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(where.host, where.port, error);
  if (error || found.empty()) return Error{"resolve", where.host, error ? error.message() : "no address"};
  return found.begin()->endpoint();
}

Result<tcp::endpoint> listen_on(tcp::acceptor& acceptor, asio::io_context& io, const HostPort& where,
                                int backlog) {
  TROIKA_TRY(endpoint, resolve(io, where));
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(backlog, error);
  if (error) return Error{"listen on", text(endpoint), error.message()};
  return acceptor.local_endpoint(error);
}

LinkWriter::LinkWriter(tcp::socket socket, LinkLost lost)
    : socket_(std::move(socket)), lost_(std::move(lost)) {}

void LinkWriter::start() {
  asio::co_spawn(
      socket_.get_executor(), [self = shared_from_this()] { return self->watch(); }, asio::detached);
}

// The next stage never sends anything after the handshake, so a read ends only when the link does.
asio::awaitable<void> LinkWriter::watch() {
  char byte = 0;
  const auto [error, count] =
      co_await socket_.async_read_some(asio::buffer(&byte, 1), asio::as_tuple(asio::use_awaitable));
  lose(error ? reason_of(error) : "it sent what it must not");
}

void LinkWriter::send(std::string frame) {
  if (queue_.size() >= kMostFrames) return lose("it does not read");
  queue_.push_back(std::move(frame));
  if (queue_.size() == 1) write();
}

void LinkWriter::write() {
  asio::async_write(socket_, asio::buffer(queue_.front()),
                    [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                      if (error) return self->lose(reason_of(error));
                      self->queue_.pop_front();
                      if (!self->queue_.empty()) self->write();
                    });
}

void LinkWriter::lose(std::string reason) {
  if (!lost_) return;
  const auto lost = std::exchange(lost_, nullptr);
  lost(std::move(reason));
}

LinkReader::LinkReader(tcp::socket socket, WireLimits limits, Take take, LinkLost lost)
    : socket_(std::move(socket)), limits_(limits), take_(std::move(take)), lost_(std::move(lost)) {}

void LinkReader::read() {
  header_.resize(kFrameHeader);
  asio::async_read(socket_, asio::buffer(header_),
                   [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                     if (error) return self->lose(reason_of(error));
                     const auto header = parse_frame_header(self->header_, self->limits_);
                     if (!header.ok()) return self->lose(header.error().reason);
                     self->read_payload(*header);
                   });
}

void LinkReader::read_payload(FrameHeader header) {
  payload_.resize(header.bytes);
  asio::async_read(
      socket_, asio::buffer(payload_),
      [self = shared_from_this(), kind = header.kind](const boost::system::error_code& error, std::size_t) {
        if (error) return self->lose(reason_of(error));
        self->take_(kind, self->payload_);
        self->read();
      });
}

void LinkReader::lose(std::string reason) {
  if (!lost_) return;
  const auto lost = std::exchange(lost_, nullptr);
  lost(std::move(reason));
}

}  // namespace troika::native
