// Handshakes between sockets of this process: who is let in, who is not, and that nobody disturbs.
#include "engine/native/service/link.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <optional>

namespace troika::native {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto kPatience = std::chrono::seconds(20);

Hello expected_hello() {
  Hello hello;
  hello.cluster = "lab";
  hello.replica = "a";
  hello.epoch = 7;
  hello.from_rank = 0;
  hello.to_rank = 1;
  hello.ranks = 2;
  hello.hidden = 4;
  hello.layers = 5;
  hello.boundary = 2;
  hello.rows = 8;
  hello.sequences = 2;
  hello.context = 64;
  return hello;
}

class Links : public testing::Test {
 protected:
  Links() {
    key_.fill(9);
    listener_.emplace(io_, expected_hello(), key_, [this](tcp::socket socket) {
      previous_ = std::make_shared<tcp::socket>(std::move(socket));
    });
    EXPECT_TRUE(listener_->listen({"127.0.0.1", "0"}).ok());
    where_ = {"127.0.0.1", std::to_string(listener_->endpoint().port())};
  }

  void dial(const Hello& hello, const LinkKey& key) {
    asio::co_spawn(
        io_, dial_link(io_, where_, hello, key),
        [this](const std::exception_ptr&, const std::shared_ptr<tcp::socket>& socket) { next_ = socket; });
  }

  template <class Condition>
  bool run_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    return condition();
  }

  // What a raw connection gets back after sending `bytes`, until the listener closes it.
  std::string talk(const std::string& bytes) {
    tcp::socket socket(io_);
    socket.connect(listener_->endpoint());
    asio::write(socket, asio::buffer(bytes));
    std::string answer;
    std::array<char, 256> buffer{};
    bool closed = false;
    std::function<void()> read = [&] {
      socket.async_read_some(asio::buffer(buffer),
                             [&](const boost::system::error_code& error, std::size_t count) {
                               answer.append(buffer.data(), count);
                               if (error)
                                 closed = true;
                               else
                                 read();
                             });
    };
    read();
    EXPECT_TRUE(run_until([&] { return closed; })) << "still open";
    return answer;
  }

  asio::io_context io_;
  LinkKey key_{};
  std::optional<LinkListener> listener_;
  HostPort where_;
  std::shared_ptr<tcp::socket> previous_;
  std::shared_ptr<tcp::socket> next_;
};

TEST_F(Links, OpenWithTheSameWordsAndKey) {
  dial(expected_hello(), key_);
  EXPECT_TRUE(run_until([&] { return previous_ && next_; }));
}

TEST_F(Links, WrongHellosAreRefusedAndDoNotDisturbTheRightOne) {
  auto epoch = expected_hello();
  epoch.epoch = 6;
  auto rank = expected_hello();
  rank.from_rank = 1;
  auto shape = expected_hello();
  shape.hidden = 8;
  for (const auto& hello : {epoch, rank, shape}) {
    const auto answer = talk(encode(hello));
    // The listener says who it is, and proves nothing: 32 zero bytes.
    ASSERT_GT(answer.size(), sizeof(Mac));
    EXPECT_EQ(answer.substr(answer.size() - sizeof(Mac)), std::string(sizeof(Mac), '\0'));
  }
  EXPECT_FALSE(previous_);
  dial(expected_hello(), key_);
  EXPECT_TRUE(run_until([&] { return previous_ && next_; }));
}

TEST_F(Links, AWrongKeyIsRefusedByBothEnds) {
  LinkKey other{};
  dial(expected_hello(), other);
  EXPECT_FALSE(run_until([&, turns = 0]() mutable { return (previous_ || next_) || ++turns > 50; }) &&
               (previous_ || next_));
  const auto answer = talk(encode(expected_hello()) + std::string(sizeof(Mac), 'x'));
  EXPECT_FALSE(answer.ends_with(kConfirm) &&
               answer.size() == encode(expected_hello()).size() + sizeof(Mac) + 1);
  EXPECT_FALSE(previous_);
}

TEST_F(Links, GarbageIsDroppedAtOnce) {
  EXPECT_EQ(talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "");
  EXPECT_EQ(talk(std::string(4096, '\xff')), "");
  EXPECT_EQ(talk(std::string(kLinkMagic) + "\x01" + std::string(1, '\0') + "\xff\xff"), "");
  dial(expected_hello(), key_);
  EXPECT_TRUE(run_until([&] { return previous_ && next_; }));
}

TEST_F(Links, IdlersCannotKeepTheRightOneOut) {
  std::vector<tcp::socket> idlers;
  for (int i = 0; i < 40; ++i) {
    idlers.emplace_back(io_);
    idlers.back().connect(listener_->endpoint());
    io_.restart();
    io_.poll();
  }
  dial(expected_hello(), key_);
  EXPECT_TRUE(run_until([&] { return previous_ && next_; }));
  // All are closed in the end: the oldest when there were too many, the others by the time limit.
  for (auto& idler : idlers) {
    bool closed = false;
    char byte = 0;
    idler.async_read_some(asio::buffer(&byte, 1),
                          [&](const boost::system::error_code& error, std::size_t) { closed = bool(error); });
    EXPECT_TRUE(run_until([&] { return closed; }));
  }
}

TEST_F(Links, ASecondPreviousRankIsRefused) {
  dial(expected_hello(), key_);
  ASSERT_TRUE(run_until([&] { return previous_ && next_; }));
  const auto first = previous_;
  next_.reset();
  dial(expected_hello(), key_);
  EXPECT_TRUE(run_until([&] { return next_ != nullptr; }));
  char byte = 0;
  bool closed = false;
  next_->async_read_some(asio::buffer(&byte, 1),
                         [&](const boost::system::error_code& e, std::size_t) { closed = bool(e); });
  EXPECT_TRUE(run_until([&] { return closed; }));
  EXPECT_EQ(first, previous_);
}

TEST_F(Links, FramesArriveInOrderAndTheEndIsReportedOnce) {
  dial(expected_hello(), key_);
  ASSERT_TRUE(run_until([&] { return previous_ && next_; }));
  std::vector<std::uint64_t> numbers;
  std::string lost;
  const WireLimits limits{4, 8, 2, 100, 64, 2};
  auto reader = std::make_shared<LinkReader>(
      std::move(*previous_), limits,
      [&](FrameKind, const std::string& payload) {
        numbers.push_back(decode_tokens(payload, limits)->number);
      },
      [&](const std::string& reason) { lost += reason; });
  reader->start();
  auto writer = std::make_shared<LinkWriter>(std::move(*next_), [](const std::string&) {});
  writer->start();
  for (std::uint64_t i = 1; i <= 100; ++i)
    writer->send(encode(StepTokens{i, {}}));
  EXPECT_TRUE(run_until([&] { return numbers.size() == 100; }));
  EXPECT_EQ(numbers.front(), 1U);
  EXPECT_EQ(numbers.back(), 100U);
  writer->send(std::string("\xff\xff\xff\xff\x01", 5));
  EXPECT_TRUE(run_until([&] { return !lost.empty(); }));
  EXPECT_NE(lost.find("at most"), std::string::npos) << lost;
}

TEST(HostPort, IsCheckedInFull) {
  EXPECT_TRUE(parse_host_port("127.0.0.1:80").ok());
  EXPECT_EQ(parse_host_port("[::1]:80")->host, "::1");
  for (const char* bad :
       {"", ":", "host", "host:", ":80", "host:x", "host:65536", "::1:80", "host:-1", "[]:1"}) {
    EXPECT_FALSE(parse_host_port(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace troika::native
