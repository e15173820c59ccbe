#include "engine/native/service/http_server.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <random>

#include "engine/native/service/openai.hpp"
#include "engine/native/service/stage_log.hpp"

namespace troika::native {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
constexpr auto kHttpToken = asio::as_tuple(asio::use_awaitable);

constexpr std::size_t kMostConnections = 256;
constexpr std::uint32_t kLongestHeader = 16U << 10U;
constexpr std::uint64_t kLongestBody = 8U << 20U;      // a million tokens of prompt as JSON text
constexpr auto kIdleTime = std::chrono::seconds(60);   // between requests
constexpr auto kReadTime = std::chrono::seconds(30);   // for the rest of a request
constexpr auto kWriteTime = std::chrono::seconds(30);  // without progress

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Response respond(const Request& request, int status, std::string body,
                 const char* type = "application/json") {
  Response response(static_cast<http::status>(status), request.version());
  response.set(http::field::content_type, type);
  response.keep_alive(request.keep_alive());
  response.body() = std::move(body);
  response.prepare_payload();
  return response;
}

Response refuse(const Request& request, const ApiFault& fault) {
  return respond(request, fault.status, fault_body(fault));
}

ApiFault not_found(int status, const std::string& what) {
  ApiFault fault;
  fault.status = status;
  fault.message = what;
  return fault;
}

std::string framed(std::string_view text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

}  // namespace

// Shared by the acceptor and the sessions.
class HttpServer::State : public std::enable_shared_from_this<HttpServer::State> {
 public:
  State(asio::io_context& context, const tokenizer::Tokenizer& words, Engine& the_engine, ApiInfo the_info)
      : io(context), acceptor(context), tokenizer(words), engine(the_engine), info(std::move(the_info)) {}

  asio::awaitable<void> accept_all();
  asio::awaitable<void> session(tcp::socket socket);

  asio::io_context& io;
  tcp::acceptor acceptor;
  const tokenizer::Tokenizer& tokenizer;
  Engine& engine;
  ApiInfo info;
  std::size_t connections = 0;
  std::mt19937_64 random{std::random_device{}()};

 private:
  // What a session and its watcher know of one request under way.
  struct Watch {
    explicit Watch(const asio::any_io_executor& executor) : wake(executor) {}
    asio::steady_timer wake;  // cancelled when something has changed
    bool gone = false;        // the client closed the connection
    bool over = false;
  };

  Response plain_answer(const Request& request) const;
  // False: the connection is of no more use.
  asio::awaitable<bool> complete(beast::tcp_stream& stream, const Request& request, bool chat);
  asio::awaitable<bool> answer_whole(beast::tcp_stream& stream, const Request& request,
                                     const AnswerHead& head, Generation& generation, Watch& watch);
  asio::awaitable<bool> answer_stream(beast::tcp_stream& stream, const Request& request,
                                      const AnswerHead& head, Generation& generation, Watch& watch,
                                      bool include_usage);
  static asio::awaitable<void> watch_client(beast::tcp_stream& stream, std::shared_ptr<Watch> watch);
  static asio::awaitable<bool> write(beast::tcp_stream& stream, std::string_view bytes);
  static asio::awaitable<bool> send(beast::tcp_stream& stream, Response response);
};

asio::awaitable<bool> HttpServer::State::write(beast::tcp_stream& stream, std::string_view bytes) {
  stream.expires_after(kWriteTime);
  const auto [error, count] = co_await asio::async_write(stream, asio::buffer(bytes), kHttpToken);
  stream.expires_never();
  co_return !error;
}

asio::awaitable<bool> HttpServer::State::send(beast::tcp_stream& stream, Response response) {
  stream.expires_after(kWriteTime);
  const auto [error, count] = co_await http::async_write(stream, response, kHttpToken);
  stream.expires_never();
  co_return !error && response.keep_alive();
}

// Waits until the socket is readable: with no bytes to read, the client has closed. Bytes are the next
// request of a pipelining client; they stay where they are, and its end is then seen when they are read.
asio::awaitable<void> HttpServer::State::watch_client(beast::tcp_stream& stream,
                                                      std::shared_ptr<Watch> watch) {
  const auto [error] = co_await stream.socket().async_wait(tcp::socket::wait_read, kHttpToken);
  if (watch->over) co_return;
  char byte = 0;
  const auto got = ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (error || got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) watch->gone = true;
  watch->wake.cancel();
}

asio::awaitable<bool> HttpServer::State::answer_whole(beast::tcp_stream& stream, const Request& request,
                                                      const AnswerHead& head, Generation& generation,
                                                      Watch& watch) {
  while (!generation.finish()) {
    if (watch.gone) co_return false;
    watch.wake.expires_at(asio::steady_timer::time_point::max());
    co_await watch.wake.async_wait(kHttpToken);
  }
  const auto text = generation.take_text();
  co_return co_await send(stream, respond(request, 200, answer_body(head, text, generation)));
}

asio::awaitable<bool> HttpServer::State::answer_stream(beast::tcp_stream& stream, const Request& request,
                                                       const AnswerHead& head, Generation& generation,
                                                       Watch& watch, bool include_usage) {
  const bool chunked = request.version() >= 11;
  const bool keep = chunked && request.keep_alive();
  std::string begin = chunked ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.0 200 OK\r\n";
  begin += "Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n";
  if (chunked) begin += "Transfer-Encoding: chunked\r\n";
  if (!keep) begin += "Connection: close\r\n";
  begin += "\r\n";
  const auto frame = [&](std::string_view text) { return chunked ? framed(text) : std::string(text); };
  if (head.chat) begin += frame(role_event(head));
  const bool begun = co_await write(stream, begin);
  if (!begun) co_return false;
  for (;;) {
    if (watch.gone) co_return false;
    std::string events;
    if (generation.has_text()) events += text_event(head, generation.take_text());
    if (generation.finish()) {
      events += finish_event(head, *generation.finish());
      if (include_usage) events += usage_event(head, generation);
      events += kDoneEvent;
      std::string end = frame(events);
      if (chunked) end += "0\r\n\r\n";
      const bool written = co_await write(stream, end);
      co_return written&& keep;
    }
    if (!events.empty()) {
      const std::string part = frame(events);
      const bool written = co_await write(stream, part);
      if (!written) co_return false;
      continue;
    }
    watch.wake.expires_at(asio::steady_timer::time_point::max());
    co_await watch.wake.async_wait(kHttpToken);
  }
}

asio::awaitable<bool> HttpServer::State::complete(beast::tcp_stream& stream, const Request& request,
                                                  bool chat) {
  const ApiLimits limits{info.model, info.context_length, engine.scheduler().kv_capacity(), random()};
  auto parsed = parse_request(chat, request.body(), tokenizer, limits);
  if (const auto* fault = std::get_if<ApiFault>(&parsed))
    co_return co_await send(stream, refuse(request, *fault));
  auto& wanted = std::get<ApiRequest>(parsed);
  const auto watch = std::make_shared<Watch>(stream.get_executor());
  const auto begun = engine.begin(std::move(wanted.generation), [watch] { watch->wake.cancel(); });
  if (!begun.ok()) {
    auto fault = not_found(503, begun.error().message());
    fault.type = "server_error";
    fault.code = "queue_full";
    co_return co_await send(stream, refuse(request, fault));
  }
  const auto generation = *begun;
  const AnswerHead head{chat,
                        fmt::format("{}-{:016x}{:016x}", chat ? "chatcmpl" : "cmpl", random(), random()),
                        info.model, unix_seconds()};
  asio::co_spawn(stream.get_executor(), watch_client(stream, watch), asio::detached);
  const bool keep =
      wanted.stream ? co_await answer_stream(stream, request, head, *generation, *watch, wanted.include_usage)
                    : co_await answer_whole(stream, request, head, *generation, *watch);
  watch->over = true;
  boost::system::error_code ignored;
  stream.socket().cancel(ignored);
  if (!generation->finish()) engine.abort(*generation);
  generation->changed = nullptr;
  // Let the watcher go before the stream does.
  co_await asio::post(stream.get_executor(), asio::use_awaitable);
  co_return keep;
}

Response HttpServer::State::plain_answer(const Request& request) const {
  const std::string_view target(request.target().data(), request.target().size());
  const auto path = target.substr(0, target.find('?'));
  const bool completion = path == "/v1/chat/completions" || path == "/v1/completions";
  const bool reading =
      path == "/health" || path == "/metrics" || path == "/server_info" || path == "/v1/models";
  if (!completion && !reading)
    return refuse(request, not_found(404, "there is no " + std::string(path.substr(0, 100))));
  if (completion || request.method() != http::verb::get) {
    auto response = refuse(request, not_found(405, "the method is not allowed"));
    response.set(http::field::allow, completion ? "POST" : "GET");
    return response;
  }
  if (path == "/health") return respond(request, 200, "", "text/plain");
  if (path == "/metrics")
    return respond(request, 200, metrics_text(engine), "text/plain; version=0.0.4; charset=utf-8");
  if (path == "/server_info") return respond(request, 200, server_info_body(info));
  return respond(request, 200, models_body(info));
}

asio::awaitable<void> HttpServer::State::session(tcp::socket socket) {
  const auto self = shared_from_this();
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer(kLongestHeader + 4096);
  for (bool keep = true; keep;) {
    http::request_parser<http::string_body> parser;
    parser.header_limit(kLongestHeader);
    parser.body_limit(kLongestBody);
    stream.expires_after(kIdleTime);
    auto [error, count] = co_await http::async_read_header(stream, buffer, parser, kHttpToken);
    if (!error && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      const bool told = co_await write(stream, "HTTP/1.1 100 Continue\r\n\r\n");
      if (!told) break;
    }
    if (!error) {
      stream.expires_after(kReadTime);
      std::tie(error, count) = co_await http::async_read(stream, buffer, parser, kHttpToken);
    }
    stream.expires_never();
    if (error) {
      if (error != http::error::end_of_stream &&
          error.category() == http::make_error_code(http::error::bad_method).category()) {
        const bool too_long = error == http::error::body_limit;
        auto fault =
            not_found(too_long                             ? 413
                      : error == http::error::header_limit ? 431
                                                           : 400,
                      too_long ? "the body is over 8 MiB" : "not an HTTP request: " + error.message());
        auto response = refuse(Request(http::verb::get, "/", 11), fault);
        response.keep_alive(false);
        co_await send(stream, std::move(response));
      }
      break;
    }
    const Request request = parser.release();
    const std::string_view target(request.target().data(), request.target().size());
    const auto path = target.substr(0, target.find('?'));
    const bool post = request.method() == http::verb::post;
    if (post && (path == "/v1/chat/completions" || path == "/v1/completions")) {
      keep = co_await complete(stream, request, path == "/v1/chat/completions");
    } else {
      keep = co_await send(stream, plain_answer(request));
    }
  }
  stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
  --connections;
}

asio::awaitable<void> HttpServer::State::accept_all() {
  const auto self = shared_from_this();
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kHttpToken);
    if (error) {
      if (!acceptor.is_open()) co_return;
      asio::steady_timer pause(io, std::chrono::milliseconds(50));  // out of descriptors: until sessions end
      co_await pause.async_wait(kHttpToken);
      continue;
    }
    if (connections >= kMostConnections) continue;  // closes it
    ++connections;
    asio::co_spawn(io, session(std::move(socket)), asio::detached);
  }
}

HttpServer::HttpServer(asio::io_context& io, const tokenizer::Tokenizer& tokenizer, Engine& engine,
                       ApiInfo info)
    : state_(std::make_shared<State>(io, tokenizer, engine, std::move(info))) {}

HttpServer::~HttpServer() {
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
}

Result<tcp::endpoint> HttpServer::listen(const HostPort& where) {
  TROIKA_TRY(bound, listen_on(state_->acceptor, state_->io, where, 128));
  asio::co_spawn(state_->io, state_->accept_all(), asio::detached);
  return bound;
}

}  // namespace troika::native
