#include "daemon/gateway/http_connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "daemon/gateway/answers.hpp"
#include "platform/deadline.hpp"
#include "platform/log.hpp"

namespace troika::daemon::gateway {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

std::string status_line(unsigned status) {
  return "HTTP/1.1 " + std::to_string(status) + " " +
         std::string(http::obsolete_reason(http::int_to_status(status))) + "\r\n";
}

// The answer to what is no proper HTTP, or HTTP that is not taken here.
HttpAnswer objection(unsigned status, std::string_view text) {
  auto answer = error_answer(Trouble::InvalidRequest, text);
  answer.status = status;
  return answer;
}

HttpAnswer too_large(std::size_t limit) {
  return objection(413, "the body is larger than " + std::to_string(limit) + " bytes");
}

HttpAnswer not_http(const error_code& error) {
  return objection(400, "not HTTP: " + error.message());
}

bool is_http_error(const error_code& error) {
  return error && error.category() == http::make_error_code(http::error::bad_method).category();
}

using Head = http::request<http::string_body>;

bool any_of(std::string_view token, std::initializer_list<std::string_view> known) {
  return std::any_of(known.begin(), known.end(), [&](std::string_view one) {
    return boost::beast::iequals({token.data(), token.size()}, {one.data(), one.size()});
  });
}

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

// Exactly "chunked", once: Beast takes any other list for no coding at all, and the body for the next
// request.
std::optional<HttpAnswer> object_to_coding(const Head& head) {
  const auto fields = head.count(http::field::transfer_encoding);
  if (fields == 0) return std::nullopt;
  if (head.count(http::field::content_length) > 0)
    return objection(400, "Transfer-Encoding and Content-Length together");
  if (head.version() == 10) return objection(400, "Transfer-Encoding in HTTP/1.0");
  std::size_t codings = 0;
  const auto [begin, end] = head.equal_range(http::field::transfer_encoding);
  for (auto field = begin; field != end; ++field)
    for (const auto token : http::token_list(field->value())) {
      ++codings;
      if (!any_of(view(token), {"chunked", "identity"}))
        return objection(
            501, "the transfer coding \"" + std::string(view(token)) + "\" is not known; use chunked");
    }
  if (fields == 1 && codings == 1 && any_of(view(head[http::field::transfer_encoding]), {"chunked"}))
    return std::nullopt;
  return objection(400, "Transfer-Encoding must be chunked or absent");
}

// Where the end of this request is must be beyond doubt, for us as for any proxy in front of us; what else is
// refused here could only be misunderstood.
std::optional<HttpAnswer> object_to(const Head& head) {
  if (auto answer = object_to_coding(head)) return answer;
  // Equal ones too: somebody put them together.
  const auto length = view(head[http::field::content_length]);
  if (head.count(http::field::content_length) > 1 || length.find(',') != std::string_view::npos)
    return objection(400, "more than one Content-Length");
  const auto hosts = head.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && head.version() == 11)) return objection(400, "one Host is expected");
  const auto [first, last] = head.equal_range(http::field::content_encoding);
  for (auto field = first; field != last; ++field)
    if (!any_of(view(field->value()), {"identity", ""}))
      return objection(415, "the body must not be compressed: send it without Content-Encoding");
  const auto [begin, end] = head.equal_range(http::field::expect);
  for (auto field = begin; field != end && head.version() == 11; ++field)
    if (!any_of(view(field->value()), {"100-continue"}))
      return objection(417, "an expectation other than 100-continue cannot be met");
  return std::nullopt;
}

}  // namespace

class Connection::Reader {
 public:
  explicit Reader(const HttpLimits& limits) : buffer_(limits.header_bytes + (64u << 10)) {}

  // A new parser for the next request; bytes that came early stay in the buffer.
  http::request_parser<http::string_body>& next(const HttpLimits& limits) {
    parser_.emplace();
    parser_->header_limit(limits.header_bytes);
    parser_->body_limit(limits.body_bytes);
    return *parser_;
  }
  http::request_parser<http::string_body>& parser() { return *parser_; }
  boost::beast::flat_buffer& buffer() { return buffer_; }

 private:
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
};

asio::ip::address client_of(const asio::ip::address& remote) {
  if (!remote.is_v6()) return remote;
  const auto six = remote.to_v6();
  if (six.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, six);
  if (six.is_loopback()) return six;
  auto bytes = six.to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes);
}

Connection::Connection(std::shared_ptr<HttpCore> core, asio::ip::tcp::socket socket, asio::ip::address client)
    : core_(std::move(core)),
      socket_(std::move(socket)),
      client_(std::move(client)),
      reader_(std::make_unique<Reader>(core_->limits)) {
  ++core_->connections;
  ++core_->addresses[client_];
}

Connection::~Connection() {
  core_->bodies_bytes -= reserved_;
  leave();
}

void Connection::leave() {
  set_idle(false);
  if (!std::exchange(counted_, false)) return;
  --core_->connections;
  const auto share = core_->addresses.find(client_);
  if (--share->second == 0) core_->addresses.erase(share);
  core_->room.cancel();
}

void Connection::set_idle(bool idle) {
  if (idle == idle_.has_value()) return;
  if (idle) {
    idle_ = core_->idle.insert(core_->idle.end(), this);
    core_->room.cancel();  // it may be closed for another one
  } else {
    core_->idle.erase(*idle_);
    idle_.reset();
  }
}

// It may have been closed for another one in the meantime; then there is nothing to cancel.
void Connection::cancel() {
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::close() {
  error_code ignored;
  socket_.close(ignored);
  leave();
}

asio::awaitable<void> Connection::run() {
  const auto self = shared_from_this();
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  while (true) {
    set_idle(true);  // until the head of a request is there
    const bool came = co_await wait_for_request();
    if (!came) break;
    const bool read = co_await read_request();
    if (!read) break;
    co_await handle();
    core_->bodies_bytes -= reserved_;
    reserved_ = 0;
    request_ = {};
    if (!keep_alive_ || gone_ || !core_->accepting) break;
  }
  co_await linger();
}

// True: the first byte of a request is there.
asio::awaitable<bool> Connection::wait_for_request() {
  if (reader_->buffer().size() > 0) co_return true;
  error_code error;
  {
    const platform::Deadline deadline(socket_.get_executor(), core_->limits.idle, [this] { cancel(); });
    co_await socket_.async_wait(asio::ip::tcp::socket::wait_read,
                                asio::redirect_error(asio::use_awaitable, error));
  }
  co_return !error && socket_.is_open();
}

asio::awaitable<bool> Connection::refuse(HttpAnswer answer_to_give) {
  answer_to_give.close = true;
  const auto told = co_await answer(std::move(answer_to_give));
  (void)told;  // it is closed in any case
  co_return false;
}

asio::awaitable<bool> Connection::read_request() {
  ++number_;
  answered_ = false;
  http10_ = false;
  auto& parser = reader_->next(core_->limits);
  error_code error;
  bool late = false;
  {
    const platform::Deadline deadline(socket_.get_executor(), core_->limits.header, [this] { cancel(); });
    co_await http::async_read_header(socket_, reader_->buffer(), parser,
                                     asio::redirect_error(asio::use_awaitable, error));
    late = deadline.expired();
  }
  // Closed for another one; its head may have come in the meantime.
  if (!socket_.is_open()) co_return false;
  set_idle(false);
  if (late) co_return co_await refuse(objection(408, "the request's headers took too long"));
  if (error == http::error::end_of_stream) co_return false;
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    co_return co_await refuse(objection(431, "the request's headers are too large"));
  // By its Content-Length, before a byte of it is read.
  if (error == http::error::body_limit) co_return co_await refuse(too_large(core_->limits.body_bytes));
  if (is_http_error(error)) co_return co_await refuse(not_http(error));
  if (error) co_return false;
  const auto& head = parser.get();
  http10_ = head.version() == 10;
  keep_alive_ = parser.keep_alive();
  request_.method = std::string(head.method_string());
  const std::string_view target{head.target().data(), head.target().size()};
  request_.path = std::string(target.substr(0, target.find('?')));
  if (auto objected = object_to(head)) co_return co_await refuse(std::move(*objected));
  co_return co_await read_body();
}

asio::awaitable<bool> Connection::read_body() {
  auto& parser = reader_->parser();
  const auto length = parser.content_length();
  // A body of unknown length may become as long as any.
  const bool empty = !length && !parser.chunked();
  const std::size_t wanted = empty    ? 0
                             : length ? static_cast<std::size_t>(*length)
                                      : core_->limits.body_bytes;
  if (core_->bodies_bytes + wanted > core_->limits.bodies_bytes)
    co_return co_await refuse(error_answer(Trouble::Overloaded, "too many request bodies are being read", 1));
  core_->bodies_bytes += wanted;
  reserved_ = wanted;
  error_code error;
  bool late = false;
  if (!parser.is_done()) {
    if (!http10_ && parser.get().count(http::field::expect) > 0) {
      const auto written = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
      if (!written.ok()) co_return false;
    }
    const platform::Deadline deadline(socket_.get_executor(), core_->limits.body, [this] { cancel(); });
    co_await http::async_read(socket_, reader_->buffer(), parser,
                              asio::redirect_error(asio::use_awaitable, error));
    late = deadline.expired();
  }
  if (late) co_return co_await refuse(objection(408, "the request's body took too long"));
  if (error == http::error::body_limit) co_return co_await refuse(too_large(core_->limits.body_bytes));
  if (is_http_error(error)) co_return co_await refuse(not_http(error));
  if (error) co_return false;
  request_.body = std::move(parser.get().body());
  co_return true;
}

asio::awaitable<void> Connection::handle() {
  gone_ = false;
  asio::co_spawn(
      socket_.get_executor(), [self = shared_from_this(), number = number_] { return self->watch(number); },
      asio::detached);
  bool failed = false;
  try {
    co_await core_->handler(*this);
  } catch (const std::exception& e) {
    platform::log("internal error while serving " + request_.path + ": " + e.what());
    failed = true;
  }
  on_gone_ = {};
  ++number_;
  error_code ignored;
  socket_.cancel(ignored);  // the watcher
  if (!failed) co_return;
  keep_alive_ = false;
  if (!answered_) co_await refuse(error_answer(Trouble::InternalError, "internal error"));
}

// Tells when the client closes its side while its request is being handled.
asio::awaitable<void> Connection::watch(std::uint64_t number) {
  error_code error;
  co_await socket_.async_wait(asio::ip::tcp::socket::wait_read,
                              asio::redirect_error(asio::use_awaitable, error));
  if (error || number != number_ || !socket_.is_open()) co_return;
  char byte = 0;
  const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  // More bytes: the next request came early. A close behind it shows when an answer is written.
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) co_return;
  gone_ = true;
  if (on_gone_) std::exchange(on_gone_, {})();
}

void Connection::on_gone(std::function<void()> gone) {
  if (gone_ && gone) {
    gone();
    return;
  }
  on_gone_ = std::move(gone);
}

asio::awaitable<Status> Connection::write(std::string bytes) {
  error_code error;
  bool late = false;
  {
    const platform::Deadline deadline(socket_.get_executor(), core_->limits.write, [this] { close(); });
    co_await asio::async_write(socket_, asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, error));
    late = deadline.expired();
  }
  if (!error) co_return Done{};
  keep_alive_ = false;
  gone_ = true;
  co_return Error{"answer", "the client", late ? "it takes no bytes" : error.message()};
}

asio::awaitable<Status> Connection::answer(HttpAnswer given) {
  answered_ = true;
  if (given.close) keep_alive_ = false;
  std::string text = status_line(given.status);
  text += "Content-Type: " + given.content_type + "\r\nContent-Length: " + std::to_string(given.body.size()) +
          "\r\n";
  for (const auto& [name, value] : given.headers)
    text += name + ": " + value + "\r\n";
  text += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  if (request_.method != "HEAD") text += given.body;
  co_return co_await write(std::move(text));
}

asio::awaitable<Status> Connection::begin_stream(unsigned status, std::string content_type) {
  answered_ = true;
  // HTTP/1.0 knows no chunks: there the end of the connection is the end of the answer.
  if (http10_) keep_alive_ = false;
  std::string text = status_line(status);
  text += "Content-Type: " + content_type + "\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  if (!http10_) text += "Transfer-Encoding: chunked\r\n";
  text += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  co_return co_await write(std::move(text));
}

asio::awaitable<Status> Connection::piece(std::string bytes) {
  if (bytes.empty()) co_return Done{};  // an empty chunk would be the last one
  if (http10_) co_return co_await write(std::move(bytes));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string size;
  for (std::size_t rest = bytes.size(); rest > 0; rest >>= 4u)
    size.insert(size.begin(), kDigits[rest & 15u]);
  co_return co_await write(size + "\r\n" + bytes + "\r\n");
}

asio::awaitable<Status> Connection::end_stream(bool close_after) {
  if (close_after) keep_alive_ = false;
  if (http10_) co_return Done{};
  co_return co_await write("0\r\n\r\n");
}

// Bytes still unread when a socket is closed make the kernel reset it, and the client may lose the answer: so
// the sending side ends first, and what comes is read for a moment.
asio::awaitable<void> Connection::linger() {
  static constexpr Duration kLinger = std::chrono::seconds{1};
  static constexpr int kReads = 16;
  if (!socket_.is_open()) co_return;
  set_idle(true);
  error_code error;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (!gone_ && answered_) {
    const platform::Deadline deadline(socket_.get_executor(), kLinger, [this] { close(); });
    std::string sink(16u << 10, '\0');
    for (int i = 0; i < kReads && !error; ++i)
      co_await socket_.async_read_some(asio::buffer(sink), asio::redirect_error(asio::use_awaitable, error));
  }
  close();
}

}  // namespace troika::daemon::gateway
