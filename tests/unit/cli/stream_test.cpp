// A stream that is given up does not make anybody wait for the rest of it.
#include "cli/local/stream.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "platform/clock.hpp"
#include "platform/unique_fd.hpp"

namespace troika::local {
namespace {

using namespace std::chrono_literals;

// Begins an answer and then says nothing more.
class Silent {
 public:
  Silent() : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Silent() { thread_.join(); }
  std::uint16_t port() const { return port_; }

 private:
  void serve() const {
    const platform::UniqueFd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string text =
        "HTTP/1.1 200 OK\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n";
    EXPECT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    char rest[4096];
    while (::recv(client.get(), rest, sizeof rest, 0) > 0) {
    }
  }

  platform::UniqueFd listening_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

constexpr Duration kFar = 20s;  // below the silence that a stream allows its peer

void wait_for_a_word(const Stream& stream) {
  const Instant until = platform::now() + kFar;
  while (stream.pieces() == 0 && platform::now() < until)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(stream.pieces(), 1u);
}

TEST(Stream, IsGivenUpWhereNobodyJoinsIt) {
  const Silent peer;
  const Instant began = platform::now();
  {
    const Stream stream("127.0.0.1", peer.port(), {"POST", "/v1/chat/completions", "{}"});
    wait_for_a_word(stream);
  }
  EXPECT_LT(platform::now() - began, kFar);
}

TEST(Stream, IsEndedByTheStopOfItsRequest) {
  const Silent peer;
  std::atomic<bool> stop = false;
  HttpRequest request{"POST", "/v1/chat/completions", "{}"};
  request.stop = [&] { return stop.load(); };
  const Instant began = platform::now();
  Stream stream("127.0.0.1", peer.port(), request);
  wait_for_a_word(stream);
  stop = true;
  const StreamOutcome outcome = stream.join();
  EXPECT_LT(platform::now() - began, kFar);
  EXPECT_EQ(outcome.trouble, "interrupted");
  EXPECT_FALSE(outcome.whole());
}

}  // namespace
}  // namespace troika::local
