// Framed connections over TLS 1.3 with client certificates, or over a Unix socket with peer credentials.
//
// A frame is: length of the payload (4 bytes, big endian), kind (1 byte: 0 message, 1 raw), payload. A frame
// longer than protocol::kMaxMessage (raw: kMaxRawFrame) or of another kind ends the connection. All calls of
// one io_context's single thread.
//
// g++ 12 destroys an aggregate with strings twice when it is made inside a co_await expression. Frame and
// Peer have constructors, which are safe; make every other aggregate (a message, an Error) in a variable
// first:
//   StopStage stop{...};  co_await tell(std::move(stop));      never      co_await tell(StopStage{...});
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "platform/tls.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::platform {

namespace asio = boost::asio;

struct Frame {
  enum class Kind : std::uint8_t { Message = 0, Raw = 1 };
  Frame() = default;
  Frame(Kind kind_, std::string payload_) : kind(kind_), payload(std::move(payload_)) {}

  Kind kind{};
  std::string payload;
};

// Who is at the other end.
struct Peer {
  Peer() = default;
  Peer(Identity identity_, std::string address_, std::uint32_t uid_)
      : identity(std::move(identity_)), address(std::move(address_)), uid(uid_) {}

  Identity identity;      // of its certificate; over Unix sockets role Local and the name "uid UID pid PID"
  std::string address;    // "host:port", or the socket's path
  std::uint32_t uid = 0;  // Unix sockets only
};

class Channel {
 public:
  // Frames and bytes that may wait to be sent; a peer that reads too slowly beyond them is cut off.
  static constexpr std::size_t kMaxQueuedFrames = 4096;
  static constexpr Bytes kMaxQueuedBytes{16u << 20};

  virtual ~Channel() = default;

  // The next frame. Errors: closed by the peer, `limit` passed, malformed frame. One reader at a time; after
  // an error the channel is closed.
  virtual asio::awaitable<Result<Frame>> read(Duration limit) = 0;
  // Queues a frame and returns at once. When the queue is full the channel is closed instead.
  virtual void send(Frame frame) = 0;
  // Waits until everything queued before it and this frame are handed to the system, at most `limit`.
  virtual asio::awaitable<Status> write(Frame frame, Duration limit) = 0;
  // Cancels reads and writes; idempotent. flush_and_close first sends what is queued, at most `limit` long.
  virtual void close() = 0;
  virtual asio::awaitable<void> flush_and_close(Duration limit) = 0;
  virtual bool open() const = 0;
  virtual const Peer& peer() const = 0;
};

using ChannelPtr = std::shared_ptr<Channel>;

struct ListenLimits {
  std::size_t connections = 256;  // more are closed at once
  Duration handshake = std::chrono::seconds{10};
};

// Accepts until destroyed; calls `serve` (as a coroutine of its own) for each connection whose handshake was
// good. Failed handshakes are logged with a limit on lines.
class Listener {
 public:
  using Serve = std::function<asio::awaitable<void>(ChannelPtr)>;
  virtual ~Listener() = default;
  virtual std::uint16_t port() const = 0;  // 0: Unix socket
};

// host:port; port 0 picks a free one. Errors name the address and, when taken, say so.
Result<std::unique_ptr<Listener>> listen_tls(asio::any_io_executor executor, const std::string& host,
                                             std::uint16_t port, std::shared_ptr<TlsContext> tls,
                                             Listener::Serve serve, ListenLimits limits = {});
// A stale socket file of a dead process is replaced; a live one is an error. mode 0600 or 0660. Only peers of
// this process's uid and root are let in.
Result<std::unique_ptr<Listener>> listen_unix(asio::any_io_executor executor, const std::string& path,
                                              Listener::Serve serve, ListenLimits limits = {});

// The peer must have `role`, the context's cluster and, unless empty, `name`.
asio::awaitable<Result<ChannelPtr>> dial_tls(std::string host, std::uint16_t port,
                                             std::shared_ptr<TlsContext> tls, Role role, std::string name,
                                             Duration limit);
asio::awaitable<Result<ChannelPtr>> dial_unix(std::string path, Duration limit);

}  // namespace troika::platform
