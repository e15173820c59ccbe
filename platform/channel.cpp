#include "platform/channel.hpp"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <list>

#include "platform/deadline.hpp"
#include "platform/framing.hpp"
#include "platform/log.hpp"
#include "platform/streams.hpp"

namespace troika::platform {
namespace {

// A write that makes no progress for so long ends the connection, whether or not the queue is full.
constexpr Duration kWriteStall = std::chrono::seconds{60};
// Small frames leave together, up to this many bytes a write.
constexpr std::size_t kWriteBatch = 64u << 10;
constexpr std::size_t kReadChunk = 16u << 10;  // a TLS record
// What a peer may still send while the last bytes to it are on their way.
constexpr std::size_t kMaxLinger = 8u << 20;

TcpSocket& lowest(TlsStream& stream) {
  return stream.next_layer();
}
UnixSocket& lowest(UnixSocket& socket) {
  return socket;
}

std::string reason_of(const boost::system::error_code& error) {
  if (error == asio::error::eof || error == asio::error::connection_reset ||
      error == asio::error::broken_pipe || error == asio::ssl::error::stream_truncated)
    return "closed by the peer";
  if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) return "closed";
  return error.message();
}

template <class Stream>
class FramedChannel final : public Channel, public std::enable_shared_from_this<FramedChannel<Stream>> {
 public:
  FramedChannel(std::shared_ptr<Stream> stream, Peer peer, std::shared_ptr<void> slot)
      : stream_(std::move(stream)), peer_(std::move(peer)), slot_(std::move(slot)) {}

  // Waiting coroutines hold the channel, so that none is left here.
  ~FramedChannel() override { close_socket(); }

  asio::awaitable<Result<Frame>> read(Duration limit) override {
    const auto self = this->shared_from_this();
    TROIKA_INVARIANT(!reading_);
    reading_ = true;
    auto frame = co_await read_frame(limit);
    reading_ = false;
    if (!frame.ok()) close();
    co_return frame;
  }

  void send(Frame frame) override { enqueue(std::move(frame)); }

  asio::awaitable<Status> write(Frame frame, Duration limit) override {
    const auto self = this->shared_from_this();
    enqueue(std::move(frame));
    co_return co_await sent(limit);
  }

  void close() override {
    if (!open_) return;
    open_ = false;
    queue_.clear();
    queued_bytes_ = 0;
    close_socket();
    wake();
  }

  asio::awaitable<void> flush_and_close(Duration limit) override {
    const auto self = this->shared_from_this();
    if (!open_) co_return;
    const Deadline deadline(stream_->get_executor(), limit, [self] { self->close(); });
    const Status flushed = co_await sent(limit);
    if (flushed.ok() && open_) co_await linger(limit);
    close();
  }

  bool open() const override { return open_; }
  const Peer& peer() const override { return peer_; }

 private:
  // A coroutine that waits until `number` frames have left, or the channel is closed.
  struct Waiter {
    std::uint64_t number;
    asio::steady_timer timer;
  };

  Error error(std::string doing, std::string reason) const {
    return Error{std::move(doing), uri_text(), std::move(reason)};
  }
  std::string uri_text() const {
    return std::string(name(peer_.identity.role)) + " " + peer_.identity.name + " (" + peer_.address + ")";
  }

  void close_socket() {
    boost::system::error_code ignored;
    lowest(*stream_).close(ignored);
  }

  asio::awaitable<Result<Frame>> read_frame(Duration limit) {
    if (!open_) co_return error("read from", "closed");
    const auto self = this->shared_from_this();
    std::optional<Deadline> deadline;  // only where the socket is waited for
    while (true) {
      auto next = frames_.next();
      if (!next.ok()) {
        log("closing " + uri_text() + ": " + next.error().message());
        co_return error("read from", next.error().reason);
      }
      if (next->has_value()) co_return **std::move(next);
      if (!deadline) deadline.emplace(stream_->get_executor(), limit, [self] { self->close_socket(); });
      boost::system::error_code failed;
      const std::size_t got = co_await stream_->async_read_some(
          asio::buffer(chunk_), asio::redirect_error(asio::use_awaitable, failed));
      if (deadline->expired()) co_return error("read from", "nothing came within the time limit");
      if (failed) co_return error("read from", reason_of(failed));
      if (!open_) co_return error("read from", "closed");
      frames_.append({chunk_.data(), got});
    }
  }

  void enqueue(Frame frame) {
    if (!open_ || ending_) return;
    if (frame.payload.size() > frame_limit(frame.kind)) {
      log("closing " + uri_text() + ": a frame of " + std::to_string(frame.payload.size()) +
          " bytes was to be sent to it, at most " + std::to_string(frame_limit(frame.kind)) + " are allowed");
      close();
      return;
    }
    const std::uint64_t bytes = queued_bytes_ + frame.payload.size() + kFrameHeader;
    if (queue_.size() >= kMaxQueuedFrames || bytes > kMaxQueuedBytes.count) {
      log("closing " + uri_text() + ": it reads too slowly, " + std::to_string(queue_.size()) +
          " frames of " + std::to_string(queued_bytes_) + " bytes wait");
      close();
      return;
    }
    queued_bytes_ = bytes;
    ++accepted_;
    queue_.push_back(std::move(frame));
    if (pumping_) return;
    pumping_ = true;
    asio::co_spawn(stream_->get_executor(), pump(this->shared_from_this()), asio::detached);
  }

  // Sends what is queued until nothing is left. Holds the channel.
  asio::awaitable<void> pump(std::shared_ptr<FramedChannel> self) {
    std::string batch;
    while (open_ && !queue_.empty()) {
      batch.clear();
      std::uint64_t frames = 0;
      do {
        append_frame(batch, queue_.front());
        queue_.pop_front();
        ++frames;
      } while (!queue_.empty() && batch.size() + kFrameHeader + queue_.front().payload.size() <= kWriteBatch);
      boost::system::error_code failed;
      {
        const Deadline deadline(stream_->get_executor(), kWriteStall, [self] { self->close(); });
        co_await asio::async_write(*stream_, asio::buffer(batch),
                                   asio::redirect_error(asio::use_awaitable, failed));
      }
      if (!open_) break;
      if (failed) {
        close();
        break;
      }
      queued_bytes_ -= batch.size();
      sent_ += frames;
      wake();
    }
    pumping_ = false;
  }

  asio::awaitable<Status> sent(Duration limit) {
    if (!open_) co_return error("write to", "closed");
    const std::uint64_t number = accepted_;
    if (sent_ < number) co_await wait_for(number, limit);
    if (sent_ >= number) co_return Done{};
    if (!open_) co_return error("write to", "closed");
    close();
    co_return error("write to", "not taken within the time limit");
  }

  asio::awaitable<void> wait_for(std::uint64_t number, Duration limit) {
    const auto waiter =
        waiters_.insert(waiters_.end(), Waiter{number, asio::steady_timer(stream_->get_executor(), limit)});
    struct Leave {  // also where this coroutine is destroyed while it waits
      std::list<Waiter>& list;
      typename std::list<Waiter>::iterator at;
      ~Leave() { list.erase(at); }
    } const leave{waiters_, waiter};
    boost::system::error_code woken;
    co_await waiter->timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }

  // Coroutines whose frames have left, or all when the channel is closed.
  void wake() {
    for (Waiter& waiter : waiters_)
      if (!open_ || sent_ >= waiter.number) waiter.timer.cancel();
  }

  // Sends the end of the stream and waits for the peer's: closing at once would reset the connection, and
  // lose what the peer has not read, if it has sent something since.
  asio::awaitable<void> linger(Duration limit) {
    ending_ = true;
    boost::system::error_code failed;
    lowest(*stream_).shutdown(asio::socket_base::shutdown_send, failed);
    if (failed) co_return;
    // A reader of ours sees the peer's end, and closes.
    constexpr std::uint64_t kNever = ~std::uint64_t{0};
    if (reading_) co_return co_await wait_for(kNever, limit);
    for (std::size_t total = 0; open_ && !failed && total < kMaxLinger;)
      total += co_await lowest(*stream_).async_read_some(asio::buffer(chunk_),
                                                         asio::redirect_error(asio::use_awaitable, failed));
  }

  std::shared_ptr<Stream> stream_;
  Peer peer_;
  std::shared_ptr<void> slot_;
  bool open_ = true;
  bool reading_ = false;
  bool pumping_ = false;
  bool ending_ = false;  // nothing more is sent
  std::array<char, kReadChunk> chunk_{};
  FrameReader frames_;
  std::deque<Frame> queue_;
  std::uint64_t queued_bytes_ = 0;  // of the queue and of the write under way
  std::uint64_t accepted_ = 0;      // frames ever queued
  std::uint64_t sent_ = 0;          // of these, handed to the system
  std::list<Waiter> waiters_;
};

}  // namespace

ChannelPtr make_channel(TlsStreamPtr stream, Peer peer, std::shared_ptr<void> slot) {
  return std::make_shared<FramedChannel<TlsStream>>(std::move(stream), std::move(peer), std::move(slot));
}

ChannelPtr make_channel(UnixSocket socket, Peer peer, std::shared_ptr<void> slot) {
  return std::make_shared<FramedChannel<UnixSocket>>(std::make_shared<UnixSocket>(std::move(socket)),
                                                     std::move(peer), std::move(slot));
}

}  // namespace troika::platform
