// The one unit of the agent that includes Beast.
#include "agent/http/exchange.hpp"

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "agent/stage/addresses.hpp"
#include "platform/clock.hpp"
#include "platform/deadline.hpp"

namespace troika::agent {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

class Exchange final : public HttpExchange, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(asio::any_io_executor executor, std::string address)
      : executor_(std::move(executor)),
        address_(std::move(address)),
        socket_(executor_),
        buffer_(kLongestHead) {
    parser_.header_limit(kLongestHead);
    parser_.body_limit(boost::none);
  }

  asio::awaitable<Result<HttpHead>> begin(HttpRequest request, Duration limit) override {
    const platform::Deadline deadline{executor_, limit, [self = shared_from_this()] { self->cancel(); }};
    boost::system::error_code error;
    const auto token = [&error] { return asio::redirect_error(asio::use_awaitable, error); };
    const auto target = parse_address(address_);
    if (!target.ok()) co_return target.error();
    const auto host = asio::ip::make_address(target->host == "localhost" ? "127.0.0.1" : target->host, error);
    if (error) co_return Error{"connect to the stage at", address_, "a numeric address is expected"};
    co_await socket_.async_connect(tcp::endpoint{host, target->port}, token());
    if (error) co_return failed("connect to the stage at", error, deadline.expired());
    socket_.set_option(tcp::no_delay{true}, error);

    http::request<http::string_body> message{http::string_to_verb(request.method), request.path, 11};
    message.set(http::field::host, address_);
    message.set(http::field::connection, "close");
    if (!request.content_type.empty()) {
      message.set(http::field::content_type, request.content_type);
      message.body() = std::move(request.body);
      message.prepare_payload();
    }
    co_await http::async_write(socket_, message, token());
    if (error) co_return failed("ask the stage at", error, deadline.expired());
    co_await http::async_read_header(socket_, buffer_, parser_, token());
    if (error) co_return failed("read the answer of the stage at", error, deadline.expired());
    HttpHead head;
    head.status = parser_.get().result_int();
    head.content_type = std::string(parser_.get()[http::field::content_type]);
    co_return head;
  }

  asio::awaitable<Result<std::optional<std::string>>> next(Duration limit) override {
    const platform::Deadline deadline{executor_, limit, [self = shared_from_this()] { self->cancel(); }};
    std::array<char, kLongestPiece> piece;
    while (!parser_.is_done()) {
      auto& body = parser_.get().body();
      body.data = piece.data();
      body.size = piece.size();
      body.more = true;
      boost::system::error_code error;
      co_await http::async_read_some(socket_, buffer_, parser_,
                                     asio::redirect_error(asio::use_awaitable, error));
      const std::size_t got = piece.size() - body.size;
      // The rest of what was read waits in the buffer for the next call.
      if (error == http::error::need_buffer) error = {};
      if (got > 0) co_return std::optional{std::string(piece.data(), got)};
      if (error) co_return failed("read the answer of the stage at", error, deadline.expired());
    }
    co_return std::optional<std::string>{};
  }

  void cancel() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  Error failed(const char* doing, const boost::system::error_code& error, bool expired) const {
    std::string reason = error.message();
    if (expired)
      reason = "no answer in time";
    else if (error == http::error::partial_message || error == http::error::end_of_stream)
      reason = "the stage closed the connection";
    return Error{doing, address_, std::move(reason)};
  }

  asio::any_io_executor executor_;
  std::string address_;
  tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
};

}  // namespace

std::shared_ptr<HttpExchange> make_exchange(asio::any_io_executor executor, const std::string& address) {
  return std::make_shared<Exchange>(std::move(executor), address);
}

asio::awaitable<Result<HttpAnswer>> fetch(asio::any_io_executor executor, std::string address,
                                          HttpRequest request, Duration limit, std::size_t most) {
  const Instant deadline = platform::now() + limit;
  const auto exchange = make_exchange(std::move(executor), address);
  const auto head = co_await exchange->begin(std::move(request), limit);
  if (!head.ok()) co_return head.error();
  HttpAnswer answer{head->status, {}};
  while (true) {
    auto piece =
        co_await exchange->next(std::max(Duration{std::chrono::milliseconds{1}}, deadline - platform::now()));
    if (!piece.ok()) co_return piece.error();
    if (!*piece) co_return answer;
    answer.body += **piece;
    if (answer.body.size() > most) {
      exchange->cancel();
      co_return Error{"read the answer of the stage at", address,
                      "longer than " + std::to_string(most) + " bytes"};
    }
  }
}

}  // namespace troika::agent
