// Who is let in by the TLS listener, and whom a dialler trusts.
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <functional>
#include <random>

#include "tests/unit/platform/net.hpp"

namespace troika::platform {
namespace {

using Tcp = asio::ip::tcp;

class Handshake : public testing::Test {
 protected:
  void listen(ListenLimits limits = {}) {
    auto made = listen_tls(
        io_.get_executor(), "127.0.0.1", 0, leader_,
        [this](ChannelPtr channel) { return serve(std::move(channel)); }, limits);
    ASSERT_TRUE(made.ok()) << made.error().message();
    listener_ = *std::move(made);
  }
  asio::awaitable<void> serve(ChannelPtr channel) {
    ++served_;
    peer_ = channel->peer();
    co_await echo(std::move(channel));
  }
  // A peer that shows a certificate which its own side would refuse to load.
  std::shared_ptr<TlsContext> context_showing(const TlsFiles& files) {
    auto context = lab_.context(Role::Agent, "shows-another");
    SSL_CTX* const raw_context = context->context().native_handle();
    EXPECT_EQ(SSL_CTX_use_certificate_file(raw_context, files.certificate.c_str(), SSL_FILETYPE_PEM), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(raw_context, files.key.c_str(), SSL_FILETYPE_PEM), 1);
    return context;
  }
  // Whether a frame comes back over a connection made with this context.
  std::string try_echo(const std::shared_ptr<TlsContext>& context, Role role = Role::Leader,
                       const std::string& name = "leader") {
    return run(io_, round_trip(context, role, name));
  }
  // The same where a slot may still be taken, or a handshake may be cut off on a slow machine.
  std::string echo_in_the_end(const std::shared_ptr<TlsContext>& context) {
    std::string answer = try_echo(context);
    for (int i = 0; i < 100 && answer != "hello"; ++i) {
      run(io_, pause(20ms));
      answer = try_echo(context);
    }
    return answer;
  }
  asio::awaitable<std::string> round_trip(std::shared_ptr<TlsContext> context, Role role, std::string name) {
    auto channel = co_await dial_tls("127.0.0.1", listener_->port(), context, role, name, kSoon);
    if (!channel.ok()) co_return channel.error().message();
    (*channel)->send(message("hello"));
    const auto frame = co_await (*channel)->read(kSoon);
    co_return frame.ok() ? frame->payload : frame.error().message();
  }
  // What the listener writes to a plain TCP client, and whether it ends the connection by itself.
  asio::awaitable<bool> is_cut_off(std::string bytes) {
    Tcp::socket socket(io_);
    co_await socket.async_connect(Tcp::endpoint(asio::ip::address_v4::loopback(), listener_->port()),
                                  asio::use_awaitable);
    boost::system::error_code failed;
    co_await asio::async_write(socket, asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, failed));
    std::string answer(4096, '\0');
    while (!failed)
      co_await socket.async_read_some(asio::buffer(answer),
                                      asio::redirect_error(asio::use_awaitable, failed));
    co_return failed == asio::error::eof || failed == asio::error::connection_reset;
  }

  asio::io_context io_;
  Certificates lab_{"lab"};
  std::shared_ptr<TlsContext> leader_ = lab_.context(Role::Leader, "leader");
  std::unique_ptr<Listener> listener_;
  int served_ = 0;
  Peer peer_;
};

TEST_F(Handshake, GoodPeersKnowOneAnother) {
  listen();
  EXPECT_EQ(try_echo(lab_.context(Role::Agent, "spark-1")), "hello");
  EXPECT_EQ(peer_.identity, (Identity{"lab", Role::Agent, "spark-1"}));
  EXPECT_TRUE(peer_.address.starts_with("127.0.0.1:"));
}

TEST_F(Handshake, ACertificateOfAnotherAuthorityIsRefused) {
  listen();
  Certificates other("lab");  // the same name, another key
  const auto stranger = other.context(Role::Agent, "spark-1");
  EXPECT_NE(try_echo(stranger).find("its certificate is refused: "), std::string::npos) << try_echo(stranger);
  EXPECT_EQ(served_, 0);

  // One that trusts our authority, but was not signed by it.
  auto files = other.files(Role::Agent, "spark-2");
  auto own = TlsContext::load({files.ca, files.certificate, files.key});
  ASSERT_TRUE(own.ok());
  SSL_CTX* const raw_context = (*own)->context().native_handle();
  ASSERT_EQ(SSL_CTX_load_verify_locations(raw_context, lab_.ca().c_str(), nullptr), 1);
  testing::internal::CaptureStderr();
  EXPECT_NE(try_echo(*own), "hello");
  listener_.reset();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("refused a connection on 127.0.0.1:"), std::string::npos) << log;
  EXPECT_NE(log.find("its certificate is refused: "), std::string::npos) << log;
  EXPECT_EQ(served_, 0);
}

TEST_F(Handshake, TheDiallerChecksRoleAndName) {
  listen();
  const auto agent = lab_.context(Role::Agent, "spark-1");
  EXPECT_NE(try_echo(agent, Role::Agent, "").find("it is troika://lab/leader/leader, expected agent"),
            std::string::npos);
  EXPECT_NE(
      try_echo(agent, Role::Leader, "other").find("it is troika://lab/leader/leader, expected leader other"),
      std::string::npos);
  EXPECT_EQ(try_echo(agent, Role::Leader, ""), "hello");
}

// One authority, two clusters: what a copied ca.key would give. The name in the certificate still tells them
// apart.
TEST_F(Handshake, AnotherClusterIsRefused) {
  listen();
  Certificates twin("twin");
  const TlsFiles files = twin.files(Role::Agent, "spark-1");
  SSL_CTX* const leader_context = leader_->context().native_handle();
  ASSERT_EQ(SSL_CTX_load_verify_locations(leader_context, twin.ca().c_str(), nullptr), 1);
  const auto stranger = Certificates::load(files);
  ASSERT_EQ(SSL_CTX_load_verify_locations(stranger->context().native_handle(), lab_.ca().c_str(), nullptr),
            1);
  EXPECT_NE(try_echo(stranger).find("its certificate is of cluster lab, expected twin"), std::string::npos)
      << try_echo(stranger);
  EXPECT_EQ(served_, 0);
}

TEST_F(Handshake, AnExpiredCertificateIsRefused) {
  listen();
  const auto agent = context_showing(lab_.expired_files(Role::Agent, "spark-1"));
  testing::internal::CaptureStderr();
  EXPECT_NE(try_echo(agent), "hello");
  listener_.reset();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("certificate has expired"), std::string::npos);
  EXPECT_EQ(served_, 0);
}

asio::awaitable<boost::system::error_code> handshake_and_read(asio::io_context& io,
                                                              asio::ssl::context& context,
                                                              std::uint16_t port) {
  asio::ssl::stream<Tcp::socket> stream(io, context);
  co_await stream.next_layer().async_connect(Tcp::endpoint(asio::ip::address_v4::loopback(), port),
                                             asio::use_awaitable);
  boost::system::error_code failed;
  co_await stream.async_handshake(asio::ssl::stream_base::client,
                                  asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return failed;
  char byte = 0;
  co_await stream.async_read_some(asio::buffer(&byte, 1), asio::redirect_error(asio::use_awaitable, failed));
  co_return failed;
}

TEST_F(Handshake, Tls12IsRefused) {
  listen();
  const TlsFiles files = lab_.files(Role::Agent, "spark-1");
  asio::ssl::context old(asio::ssl::context::tls);
  old.use_certificate_file(files.certificate, asio::ssl::context::pem);
  old.use_private_key_file(files.key, asio::ssl::context::pem);
  ASSERT_EQ(SSL_CTX_set_max_proto_version(old.native_handle(), TLS1_2_VERSION), 1);
  EXPECT_TRUE(run(io_, handshake_and_read(io_, old, listener_->port())));
  EXPECT_EQ(served_, 0);
}

TEST_F(Handshake, NoCertificateIsRefused) {
  listen();
  asio::ssl::context nameless(asio::ssl::context::tls);
  EXPECT_TRUE(run(io_, handshake_and_read(io_, nameless, listener_->port())));
  EXPECT_EQ(served_, 0);
}

TEST_F(Handshake, GarbageIsCutOffAndLoggedOnce) {
  listen();
  testing::internal::CaptureStderr();
  std::mt19937 random(11);
  for (int i = 0; i < 50; ++i) {
    std::string bytes(1 + random() % 600, '\0');
    for (char& c : bytes)
      c = static_cast<char>(random());
    if (i == 0) bytes = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    // A first byte of a TLS record and a plausible length would be waited for until the deadline.
    if (bytes[0] == 0x16) bytes[0] = 0;
    // OpenSSL waits for a whole record header.
    bytes.resize(std::max<std::size_t>(bytes.size(), 16), 'x');
    EXPECT_TRUE(run(io_, is_cut_off(bytes)));
  }
  const auto agent = lab_.context(Role::Agent, "spark-1");
  EXPECT_EQ(try_echo(agent), "hello");
  listener_.reset();
  const std::string log = testing::internal::GetCapturedStderr();
  // The first, and the count of the others: one a window, however long this takes.
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 4) << log;
  EXPECT_NE(log.find(" more like it, the last: refused a connection"), std::string::npos) << log;
}

TEST_F(Handshake, AHalfOpenConnectionEndsAtTheDeadline) {
  listen({.connections = 8, .handshake = 200ms});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(run(io_, is_cut_off("")));
  EXPECT_TRUE(run(io_, is_cut_off("\x16\x03\x01")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
  EXPECT_EQ(echo_in_the_end(lab_.context(Role::Agent, "spark-1")), "hello");
}

// A stopping daemon does not wait for strangers.
TEST_F(Handshake, HalfOpenConnectionsEndWithTheListener) {
  listen();
  Tcp::socket silent(io_);
  silent.connect(Tcp::endpoint(asio::ip::address_v4::loopback(), listener_->port()));
  run(io_, pause(50ms));
  const auto begin = std::chrono::steady_clock::now();
  listener_.reset();
  io_.restart();
  io_.run();  // returns when nothing is left to wait for
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
}

TEST_F(Handshake, AFloodOfConnectionsIsBounded) {
  listen({.connections = 4, .handshake = 30s});
  testing::internal::CaptureStderr();
  const auto flood = [this]() -> asio::awaitable<std::ptrdiff_t> {
    std::vector<std::unique_ptr<Tcp::socket>> sockets;
    for (int i = 0; i < 100; ++i) {
      sockets.push_back(std::make_unique<Tcp::socket>(io_));
      co_await sockets.back()->async_connect(
          Tcp::endpoint(asio::ip::address_v4::loopback(), listener_->port()), asio::use_awaitable);
    }
    const auto alive = [&sockets] {
      return std::count_if(sockets.begin(), sockets.end(), [](const auto& socket) {
        char byte = 0;
        boost::system::error_code failed;
        socket->non_blocking(true);
        socket->read_some(asio::buffer(&byte, 1), failed);
        return failed == asio::error::would_block;
      });
    };
    const bool bounded = co_await until([&alive] { return alive() <= 4; });
    EXPECT_TRUE(bounded);
    co_return alive();
  };
  EXPECT_EQ(run(io_, flood()), 4);
  // The flood's sockets are closed now, and the slots come back.
  EXPECT_EQ(echo_in_the_end(lab_.context(Role::Agent, "spark-1")), "hello");
  listener_.reset();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("all 4 are in use"), std::string::npos) << log;
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 4) << log;
}

TEST_F(Handshake, DialErrorsNameTheAddressAndComeInTime) {
  const auto agent = lab_.context(Role::Agent, "spark-1");
  listen();
  const std::uint16_t port = listener_->port();
  listener_.reset();
  run(io_, pause(1ms));
  const auto dial = [&](const std::string& host, Duration limit) {
    const auto channel = run(io_, dial_tls(host, port, agent, Role::Leader, "", limit));
    return channel.ok() ? std::string("connected") : channel.error().message();
  };
  EXPECT_EQ(dial("127.0.0.1", kSoon),
            "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_TRUE(dial("no-such-host.invalid", kSoon).starts_with("cannot look up no-such-host.invalid: "));
  // A host that never answers (TEST-NET-1), or that this machine has no way to.
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(dial("192.0.2.1", 200ms).starts_with("cannot connect to 192.0.2.1:"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
}

// The listener takes the connection and never speaks.
TEST_F(Handshake, ASilentServerIsGivenUp) {
  Tcp::acceptor silent(io_, Tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const auto channel = run(io_, dial_tls("127.0.0.1", silent.local_endpoint().port(),
                                         lab_.context(Role::Agent, "spark-1"), Role::Leader, "", 200ms));
  ASSERT_FALSE(channel.ok());
  EXPECT_EQ(channel.error().reason, "no answer in time");
}

TEST_F(Handshake, ATakenPortIsNamed) {
  listen();
  const auto second = listen_tls(io_.get_executor(), "127.0.0.1", listener_->port(), leader_,
                                 [](ChannelPtr channel) { return echo(std::move(channel)); });
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message(), "cannot listen on 127.0.0.1:" + std::to_string(listener_->port()) +
                                          ": another process has this address and port");
}

}  // namespace
}  // namespace troika::platform
