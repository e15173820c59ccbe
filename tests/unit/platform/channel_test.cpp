// Frames over TLS: order, limits, deadlines, and closing at any time.
#include "platform/channel.hpp"

#include <openssl/ssl.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include "protocol/messages.hpp"
#include "tests/unit/platform/net.hpp"

namespace troika::platform {
namespace {

class ChannelTest : public testing::Test {
 protected:
  // A connected pair: `ours` of the dialler, `theirs` of the listener.
  void connect() {
    theirs_.reset();  // of a connection before
    auto made = listen_tls(io_.get_executor(), "127.0.0.1", 0, leader_,
                           [this](ChannelPtr channel) -> asio::awaitable<void> {
                             theirs_ = std::move(channel);
                             co_return;
                           });
    ASSERT_TRUE(made.ok()) << made.error().message();
    listener_ = *std::move(made);
    auto channel = run(io_, dial_tls("127.0.0.1", listener_->port(), agent_, Role::Leader, "leader", kSoon));
    ASSERT_TRUE(channel.ok()) << channel.error().message();
    ours_ = *channel;
    for (int i = 0; i < 500 && theirs_ == nullptr; ++i)
      run(io_, pause(10ms));
    ASSERT_NE(theirs_, nullptr);
  }
  std::string read(const ChannelPtr& channel, Duration limit = kSoon) {
    const auto frame = run(io_, channel->read(limit));
    return frame.ok() ? frame->payload : "error: " + frame.error().reason;
  }

  asio::io_context io_;
  Certificates lab_{"lab"};
  std::shared_ptr<TlsContext> leader_ = lab_.context(Role::Leader, "leader");
  std::shared_ptr<TlsContext> agent_ = lab_.context(Role::Agent, "spark-1");
  std::unique_ptr<Listener> listener_;
  ChannelPtr ours_;
  ChannelPtr theirs_;
};

TEST_F(ChannelTest, FramesArriveInOrderWithTheirKinds) {
  connect();
  const std::string large(protocol::kMaxMessage.count, 'm');
  ours_->send(message("first"));
  ours_->send(raw(std::string(protocol::kMaxRawFrame.count, 'r')));
  ours_->send(message(large));
  ours_->send(message(""));
  EXPECT_EQ(read(theirs_), "first");
  const auto second = run(io_, theirs_->read(kSoon));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->kind, Frame::Kind::Raw);
  EXPECT_EQ(second->payload.size(), protocol::kMaxRawFrame.count);
  EXPECT_EQ(read(theirs_), large);
  EXPECT_EQ(read(theirs_), "");
}

TEST_F(ChannelTest, BothDirectionsAtOnce) {
  connect();
  const auto talk = [](ChannelPtr channel, int& seen) -> asio::awaitable<void> {
    for (int i = 0; i < 300; ++i)
      channel->send(message(std::string(1000, 'x') + std::to_string(i)));
    for (int i = 0; i < 300; ++i) {
      const auto frame = co_await channel->read(kSoon);
      if (!frame.ok() || frame->payload != std::string(1000, 'x') + std::to_string(i)) co_return;
      ++seen;
    }
  };
  int ours = 0, theirs = 0;
  asio::co_spawn(io_, talk(theirs_, theirs), asio::detached);
  run(io_, talk(ours_, ours));
  for (int i = 0; i < 500 && theirs < 300; ++i)
    run(io_, pause(1ms));
  EXPECT_EQ(ours, 300);
  EXPECT_EQ(theirs, 300);
}

TEST_F(ChannelTest, AReadEndsAtItsLimitAndClosesTheChannel) {
  connect();
  EXPECT_EQ(read(ours_, 50ms), "error: nothing came within the time limit");
  EXPECT_FALSE(ours_->open());
  EXPECT_EQ(read(ours_), "error: closed");
  EXPECT_EQ(read(theirs_), "error: closed by the peer");
}

// A frame that trickles in does not hold its reader longer than a frame that never comes.
TEST_F(ChannelTest, TheLimitIsForTheWholeFrame) {
  connect();
  const auto trickle = [this]() -> asio::awaitable<bool> {
    const auto begin = std::chrono::steady_clock::now();
    const auto frame = co_await theirs_->read(300ms);
    co_return !frame.ok() && std::chrono::steady_clock::now() - begin < kSoon;
  };
  // A client below the frames: one byte of a header each 50 ms.
  ours_->close();
  theirs_.reset();
  bool ended = false;
  const auto client = [this, &ended]() -> asio::awaitable<void> {
    asio::ssl::stream<asio::ip::tcp::socket> stream(io_, agent_->context());
    co_await stream.next_layer().async_connect({asio::ip::address_v4::loopback(), listener_->port()},
                                               asio::use_awaitable);
    co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
    const std::string header("\0\0\0\x40\0", 5);
    boost::system::error_code failed;
    for (std::size_t i = 0; !failed; ++i) {
      co_await asio::async_write(stream, asio::buffer(&header[i % 5], 1),
                                 asio::redirect_error(asio::use_awaitable, failed));
      co_await pause(50ms);
    }
    ended = true;
  };
  asio::co_spawn(io_, client(), asio::detached);
  for (int i = 0; i < 500 && theirs_ == nullptr; ++i)
    run(io_, pause(10ms));
  ASSERT_NE(theirs_, nullptr);
  EXPECT_TRUE(run(io_, trickle()));
  EXPECT_FALSE(theirs_->open());
  EXPECT_TRUE(run(io_, until([&] { return ended; })));
}

TEST_F(ChannelTest, AMalformedFrameClosesTheConnection) {
  for (const std::string& bytes : {std::string("\0\0\0\1\7x", 6), std::string("\xff\xff\xff\xff\0", 5),
                                   std::string("\0\1\0\1\1", 5), std::string("GET / HTTP/1.1\r\n\r\n")}) {
    connect();
    ours_->close();
    theirs_.reset();
    bool ended = false;
    const auto client = [this, bytes, &ended]() -> asio::awaitable<void> {
      asio::ssl::stream<asio::ip::tcp::socket> stream(io_, agent_->context());
      co_await stream.next_layer().async_connect({asio::ip::address_v4::loopback(), listener_->port()},
                                                 asio::use_awaitable);
      co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
      co_await asio::async_write(stream, asio::buffer(bytes), asio::use_awaitable);
      boost::system::error_code failed;
      char byte = 0;
      while (!failed)
        co_await stream.async_read_some(asio::buffer(&byte, 1),
                                        asio::redirect_error(asio::use_awaitable, failed));
      ended = true;
    };
    asio::co_spawn(io_, client(), asio::detached);
    for (int i = 0; i < 500 && theirs_ == nullptr; ++i)
      run(io_, pause(10ms));
    ASSERT_NE(theirs_, nullptr);
    const std::string answer = read(theirs_);
    EXPECT_TRUE(answer.starts_with("error: unknown kind") || answer.find("are allowed") != std::string::npos)
        << answer;
    EXPECT_FALSE(theirs_->open());
    EXPECT_TRUE(run(io_, until([&] { return ended; }))) << "the connection is left open";
    listener_.reset();
  }
}

TEST_F(ChannelTest, ASlowReaderIsCutOff) {
  connect();
  // Nobody reads: the kernel's buffers fill, then the queue.
  std::uint64_t sent = 0;
  while (ours_->open() && sent < 1u << 30) {
    ours_->send(raw(std::string(60'000, 'x')));
    sent += 60'000;
    io_.poll();
  }
  EXPECT_FALSE(ours_->open());
  EXPECT_LT(sent, 256u << 20);
}

TEST_F(ChannelTest, TheQueueHoldsSoManyFrames) {
  connect();
  for (std::size_t i = 0; i < Channel::kMaxQueuedFrames; ++i)
    ours_->send(message("x"));
  EXPECT_TRUE(ours_->open());
  ours_->send(message("x"));
  EXPECT_FALSE(ours_->open());
}

// A frame that no peer would take is a fault of this side, not a reason to die.
TEST_F(ChannelTest, AFrameOverTheLimitIsNotSent) {
  connect();
  ours_->send(raw(std::string(protocol::kMaxRawFrame.count + 1, 'x')));
  EXPECT_FALSE(ours_->open());
  EXPECT_EQ(read(theirs_), "error: closed by the peer");
}

TEST_F(ChannelTest, WriteWaitsForWhatIsQueuedBefore) {
  connect();
  ours_->send(message("one"));
  const Status written = run(io_, ours_->write(message("two"), kSoon));
  EXPECT_TRUE(written.ok());
  EXPECT_EQ(read(theirs_), "one");
  EXPECT_EQ(read(theirs_), "two");
}

TEST_F(ChannelTest, WriteEndsAtItsLimit) {
  connect();
  const auto fill = [this]() -> asio::awaitable<std::string> {
    while (true) {
      const Status written = co_await ours_->write(raw(std::string(60'000, 'x')), 200ms);
      if (!written.ok()) co_return written.error().reason;
    }
  };
  EXPECT_EQ(run(io_, fill()), "not taken within the time limit");
  EXPECT_FALSE(ours_->open());
}

TEST_F(ChannelTest, CloseWakesReaderAndWriters) {
  connect();
  std::vector<std::string> ends;
  const auto reader = [&](ChannelPtr channel) -> asio::awaitable<void> {
    const auto frame = co_await channel->read(kSoon);
    ends.push_back(frame.ok() ? "frame" : frame.error().reason);
  };
  const auto writer = [&](ChannelPtr channel) -> asio::awaitable<void> {
    while (true) {
      const Status written = co_await channel->write(raw(std::string(60'000, 'x')), kSoon);
      if (written.ok()) continue;
      ends.push_back(written.error().reason);
      co_return;
    }
  };
  asio::co_spawn(io_, reader(ours_), asio::detached);
  asio::co_spawn(io_, writer(ours_), asio::detached);
  run(io_, pause(300ms));
  EXPECT_TRUE(ends.empty());
  ours_->close();
  ours_->close();
  ours_->send(message("late"));
  for (int i = 0; i < 500 && ends.size() < 2; ++i)
    run(io_, pause(10ms));
  EXPECT_EQ(ends, (std::vector<std::string>{"closed", "closed"}));
}

TEST_F(ChannelTest, FlushAndCloseDeliversWhatIsQueuedThoughThePeerSpeaks) {
  connect();
  // Unread bytes at close would reset the connection and lose what is under way.
  for (int i = 0; i < 20; ++i)
    theirs_->send(message(std::string(10'000, 'y')));
  run(io_, pause(50ms));
  const std::string large(1u << 20, 'x');
  ours_->send(message(large));
  ours_->send(message("last"));
  asio::co_spawn(io_, ours_->flush_and_close(kSoon), asio::detached);
  EXPECT_EQ(read(theirs_), large);
  EXPECT_EQ(read(theirs_), "last");
  EXPECT_EQ(read(theirs_), "error: closed by the peer");
  for (int i = 0; i < 500 && ours_->open(); ++i)
    run(io_, pause(10ms));
  EXPECT_FALSE(ours_->open());
}

TEST_F(ChannelTest, FlushAndCloseEndsAtItsLimit) {
  connect();
  for (int i = 0; i < 200; ++i)
    ours_->send(raw(std::string(60'000, 'x')));  // nobody reads
  const auto begin = std::chrono::steady_clock::now();
  run(io_, ours_->flush_and_close(300ms));
  EXPECT_FALSE(ours_->open());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
}

TEST_F(ChannelTest, FlushAndCloseWithAReaderWaitsForThePeersEnd) {
  connect();
  std::string end;
  const auto reader = [&](ChannelPtr channel) -> asio::awaitable<void> {
    const auto frame = co_await channel->read(kSoon);
    end = frame.ok() ? frame->payload : frame.error().reason;
  };
  asio::co_spawn(io_, reader(ours_), asio::detached);
  run(io_, pause(20ms));
  ours_->send(message("bye"));
  asio::co_spawn(io_, ours_->flush_and_close(kSoon), asio::detached);
  EXPECT_EQ(read(theirs_), "bye");
  EXPECT_EQ(read(theirs_), "error: closed by the peer");
  for (int i = 0; i < 500 && end.empty(); ++i)
    run(io_, pause(10ms));
  EXPECT_EQ(end, "closed by the peer");
}

// The pump still runs when the last owner goes: what it writes stays alive until it ends.
TEST_F(ChannelTest, ADroppedChannelSendsWhatItHas) {
  connect();
  ours_->send(message(std::string(1u << 20, 'x')));
  ours_.reset();
  EXPECT_EQ(read(theirs_).size(), 1u << 20);
  EXPECT_EQ(read(theirs_), "error: closed by the peer");
}

// Coroutines that wait on a channel when the program ends are destroyed with the io_context.
TEST_F(ChannelTest, TheProgramMayEndAtAnyTime) {
  connect();
  const auto reader = [](ChannelPtr channel) -> asio::awaitable<void> {
    const auto frame = co_await channel->read(kSoon);
    (void)frame;
  };
  asio::co_spawn(io_, reader(ours_), asio::detached);
  asio::co_spawn(io_, reader(theirs_), asio::detached);
  for (int i = 0; i < 100; ++i)
    ours_->send(raw(std::string(60'000, 'x')));
  asio::co_spawn(io_, ours_->flush_and_close(kSoon), asio::detached);
  io_.poll();
}

TEST_F(ChannelTest, ListenerAndServedConnectionsEndInAnyOrder) {
  connect();
  listener_.reset();
  ours_->send(message("still"));
  EXPECT_EQ(read(theirs_), "still");
}

}  // namespace
}  // namespace troika::platform
