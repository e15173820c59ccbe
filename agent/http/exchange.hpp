// One HTTP/1.1 request to a stage's API on this machine and its answer, passed on as it comes.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::agent {

struct HttpRequest {
  std::string method;  // GET or POST
  std::string path;
  std::string content_type;  // empty: no body
  std::string body;
};

struct HttpHead {
  unsigned status = 0;
  std::string content_type;
};

class HttpExchange {
 public:
  // Heads over this and pieces over kLongestPiece do not come; the body as a whole has no limit of its own.
  static constexpr std::size_t kLongestHead = 64u << 10;
  static constexpr std::size_t kLongestPiece = 32u << 10;

  virtual ~HttpExchange() = default;

  // Connects, sends the request and reads the head of the answer.
  virtual boost::asio::awaitable<Result<HttpHead>> begin(HttpRequest request, Duration limit) = 0;
  // The next piece of the body as soon as there is one; nothing: the answer ended by the rules of HTTP. An
  // error: it was cut, the limit passed, or cancel() was called.
  virtual boost::asio::awaitable<Result<std::optional<std::string>>> next(Duration limit) = 0;
  // Closes the connection, so that the engine aborts; a call in progress ends with an error.
  virtual void cancel() = 0;
};

std::shared_ptr<HttpExchange> make_exchange(boost::asio::any_io_executor executor,
                                            const std::string& address);

// A whole answer of at most `most` bytes.
struct HttpAnswer {
  unsigned status = 0;
  std::string body;
};
boost::asio::awaitable<Result<HttpAnswer>> fetch(boost::asio::any_io_executor executor, std::string address,
                                                 HttpRequest request, Duration limit, std::size_t most);

}  // namespace troika::agent
