// A small HTTP/1.1 client for gateways on this machine: one request a connection, every size and wait
// limited.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::local {

struct HttpRequest {
  std::string method = "GET";
  std::string path = "/";
  std::string body{};                            // JSON, where it is not empty
  Duration silence = std::chrono::seconds{120};  // longest wait for the next byte
  std::function<bool()> stop{};  // asked several times a second of every wait; true ends it: "interrupted"
};

struct HttpReply {
  unsigned status = 0;
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;                            // empty where a reader took it
  bool complete = false;                       // the body ended by the rules of HTTP, not by a cut connection
  std::string trouble;                         // why not
};

inline constexpr Bytes kMaxHead{64u << 10};
inline constexpr Bytes kMaxBody{64u << 20};

// Pieces of the body as they arrive; false: enough, close the connection.
using BodyReader = std::function<bool(std::string_view)>;

// An error: no connection, or no head of an answer. Everything after the head is told by `complete` and
// `trouble`.
Result<HttpReply> http(const std::string& host, std::uint16_t port, const HttpRequest& request,
                       const BodyReader& reader = {});

// Takes the body of an answer apart as its bytes arrive. Pure.
class BodyDecoder {
 public:
  enum class Framing { Length, Chunked, UntilClose, None };
  static Result<BodyDecoder> of(unsigned status, const std::map<std::string, std::string>& headers);

  // Appends what belongs to the body to `out`. Errors: the bytes break the rules of HTTP.
  Status feed(std::string_view bytes, std::string& out);
  bool complete() const { return complete_; }
  // The peer closed: complete only where that is how the body ends.
  void closed() { complete_ = complete_ || framing_ == Framing::UntilClose; }

 private:
  enum class At { Size, Data, DataEnd, Trailer };
  Status feed_chunked(std::string_view bytes, std::string& out);
  Status chunk_line();

  Framing framing_ = Framing::UntilClose;
  bool complete_ = false;
  std::uint64_t left_ = 0;  // of the body or of the chunk
  At at_ = At::Size;
  std::string line_;
};

}  // namespace troika::local
