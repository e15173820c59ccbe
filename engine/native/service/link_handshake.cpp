// The handshake on a socket: listener and dialer.
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <bit>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>

#include "engine/native/service/link.hpp"
#include "engine/native/service/stage_log.hpp"

namespace troika::native {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
constexpr auto kLinkToken = asio::as_tuple(asio::use_awaitable);

// Honest peers need two round trips; who takes longer is dropped.
constexpr auto kHandshakeTime = std::chrono::seconds(5);
// Connections in the handshake at a time; one more drops the oldest, so that idlers cannot keep the peer out.
constexpr std::size_t kMostGuests = 8;
constexpr auto kFirstPause = std::chrono::milliseconds(20);
constexpr auto kLongestPause = std::chrono::milliseconds(1000);

// A cut cable sends no FIN: probes and a bound on unanswered data find it within about half a minute.
void tune(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int name, int value) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 10);
  set(TCP_KEEPINTVL, 5);
  set(TCP_KEEPCNT, 3);
  set(TCP_USER_TIMEOUT, 30'000);
}

// Closes the socket when its time is over, unless it was told not to. Keeps the socket alive while it may.
class TimeLimit {
 public:
  TimeLimit(const asio::any_io_executor& executor, std::shared_ptr<tcp::socket> socket) : timer_(executor) {
    timer_.expires_after(kHandshakeTime);
    timer_.async_wait([socket = std::move(socket)](const boost::system::error_code& error) {
      boost::system::error_code ignored;
      if (!error) socket->close(ignored);
    });
  }

 private:
  asio::steady_timer timer_;
};

asio::awaitable<Result<std::string>> read_bytes(tcp::socket& socket, std::size_t count) {
  std::string bytes(count, '\0');
  const auto [error, got] = co_await asio::async_read(socket, asio::buffer(bytes), kLinkToken);
  if (error)
    co_return Error{"shake hands with", "another stage",
                    "the connection ended after " + std::to_string(got) + " bytes"};
  co_return bytes;
}

asio::awaitable<Status> write_bytes(tcp::socket& socket, std::string bytes) {
  const auto [error, count] = co_await asio::async_write(socket, asio::buffer(bytes), kLinkToken);
  if (error) co_return Error{"shake hands with", "another stage", error.message()};
  co_return Done{};
}

struct Heard {
  std::string bytes;
  Hello hello;
};

asio::awaitable<Result<Heard>> read_hello(tcp::socket& socket) {
  auto prefix = co_await read_bytes(socket, kHelloPrefix);
  if (!prefix.ok()) co_return prefix.error();
  const auto length = parse_hello_prefix(*prefix);
  if (!length.ok()) co_return length.error();
  auto body = co_await read_bytes(socket, *length);
  if (!body.ok()) co_return body.error();
  auto hello = parse_hello_body(*body);
  if (!hello.ok()) co_return hello.error();
  co_return Heard{*prefix + *body, *hello};
}

std::string bytes_of(const Mac& mac) {
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

// An empty reason: the guest is the previous stage.
asio::awaitable<std::string> check_guest(tcp::socket& socket, Hello mine, const LinkKey& key) {
  const auto heard = co_await read_hello(socket);
  if (!heard.ok()) co_return heard.error().reason;
  const auto nonce = fresh_nonce();
  if (!nonce.ok()) co_return nonce.error().reason;
  mine.nonce = *nonce;
  const auto answer = encode(mine);
  const auto wrong = difference(mine, heard->hello);
  // A wrong peer is told who is here, so that it can say why, but gets no proof.
  Mac mac{};
  if (!wrong) mac = proof(key, LinkEnd::Listener, heard->bytes, answer);
  const auto sent = co_await write_bytes(socket, answer + bytes_of(mac));
  if (wrong) co_return *wrong;
  if (!sent.ok()) co_return sent.error().reason;
  const auto theirs = co_await read_bytes(socket, sizeof(Mac));
  if (!theirs.ok()) co_return theirs.error().reason;
  if (!same(proof(key, LinkEnd::Dialer, heard->bytes, answer), *theirs)) co_return "wrong key";
  const auto confirmed = co_await write_bytes(socket, std::string(1, kConfirm));
  co_return confirmed.ok() ? std::string() : confirmed.error().reason;
}

asio::awaitable<Status> greet(tcp::socket& socket, Hello mine, const LinkKey& key) {
  const auto nonce = fresh_nonce();
  if (!nonce.ok()) co_return nonce.error();
  mine.nonce = *nonce;
  const auto hello = encode(mine);
  const auto greeted = co_await write_bytes(socket, hello);
  if (!greeted.ok()) co_return greeted.error();
  const auto heard = co_await read_hello(socket);
  if (!heard.ok()) co_return heard.error();
  const auto fault = [](std::string reason) {
    return Error{"shake hands with", "the next stage", std::move(reason)};
  };
  if (const auto wrong = difference(mine, heard->hello)) co_return fault(*wrong);
  const auto theirs = co_await read_bytes(socket, sizeof(Mac));
  if (!theirs.ok()) co_return theirs.error();
  if (!same(proof(key, LinkEnd::Listener, hello, heard->bytes), *theirs)) co_return fault("wrong key");
  auto sent = co_await write_bytes(socket, bytes_of(proof(key, LinkEnd::Dialer, hello, heard->bytes)));
  if (!sent.ok()) co_return sent.error();
  const auto confirm = co_await read_bytes(socket, 1);
  if (!confirm.ok()) co_return confirm.error();
  if ((*confirm)[0] != kConfirm) co_return fault("the answer is not understood");
  co_return Done{};
}

}  // namespace

struct LinkListener::Guest {
  std::shared_ptr<tcp::socket> socket;
};

LinkListener::LinkListener(asio::io_context& io, Hello expected, LinkKey key, Opened opened)
    : io_(io), expected_(std::move(expected)), key_(key), opened_(std::move(opened)), acceptor_(io) {}

Status LinkListener::listen(const HostPort& where) {
  TROIKA_TRY(bound, listen_on(acceptor_, io_, where, 16));
  endpoint_ = bound;
  asio::co_spawn(io_, accept_all(), asio::detached);
  return Done{};
}

void LinkListener::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

asio::awaitable<void> LinkListener::accept_all() {
  while (acceptor_.is_open()) {
    auto [error, socket] = co_await acceptor_.async_accept(kLinkToken);
    if (error) {
      if (!acceptor_.is_open()) co_return;
      // Out of descriptors, most likely: they come back when guests go.
      asio::steady_timer pause(io_, kFirstPause);
      co_await pause.async_wait(kLinkToken);
      continue;
    }
    auto guest = std::make_shared<Guest>(Guest{std::make_shared<tcp::socket>(std::move(socket))});
    std::erase_if(guests_, [](const auto& weak) { return weak.expired(); });
    if (guests_.size() >= kMostGuests) {
      if (const auto oldest = guests_.front().lock()) {
        boost::system::error_code ignored;
        oldest->socket->close(ignored);
      }
      guests_.pop_front();
    }
    guests_.push_back(guest);
    asio::co_spawn(io_, receive(std::move(guest)), asio::detached);
  }
}

// Every new reason, and then the 2nd, 4th, 8th ... of the same: who knocks all day long does not fill the
// log.
void LinkListener::log_refusal(const std::string& remote, const std::string& reason) {
  refusals_ = reason == last_refusal_ ? refusals_ + 1 : 1;
  last_refusal_ = reason;
  if (!std::has_single_bit(refusals_)) return;
  const auto times = refusals_ == 1 ? std::string() : fmt::format(" ({} times)", refusals_);
  stage_log(fmt::format("refused a link from {}: {}{}", remote, reason, times));
}

asio::awaitable<void> LinkListener::receive(std::shared_ptr<Guest> guest) {
  auto& socket = *guest->socket;
  boost::system::error_code ignored;
  const auto remote = socket.remote_endpoint(ignored);
  std::string reason;
  {
    const TimeLimit limit(socket.get_executor(), guest->socket);
    tune(socket);
    reason = co_await check_guest(socket, expected_, key_);
  }
  if (reason.empty() && !socket.is_open()) reason = "too slow";
  if (reason.empty() && open_) reason = "the link is open already";
  if (!reason.empty()) {
    log_refusal(text(remote), reason);
    socket.close(ignored);
    co_return;
  }
  open_ = true;
  opened_(std::move(socket));
}

asio::awaitable<std::shared_ptr<tcp::socket>> dial_link(asio::io_context& io, HostPort where, Hello hello,
                                                        LinkKey key) {
  auto pause = kFirstPause;
  std::string last_reason;
  for (;;) {
    const auto socket = std::make_shared<tcp::socket>(io);
    std::string reason;
    if (const auto endpoint = resolve(io, where); endpoint.ok()) {
      const TimeLimit limit(io.get_executor(), socket);
      const auto [error] = co_await socket->async_connect(*endpoint, kLinkToken);
      if (error) {
        reason = error.message();
      } else {
        tune(*socket);
        const auto greeted = co_await greet(*socket, hello, key);
        if (greeted.ok()) co_return socket;
        reason = greeted.error().reason;
      }
    } else {
      reason = endpoint.error().reason;
    }
    if (reason != last_reason) {
      stage_log(
          fmt::format("link to rank {} at {}:{} not yet: {}", hello.to_rank, where.host, where.port, reason));
    }
    last_reason = reason;
    asio::steady_timer timer(io, pause);
    co_await timer.async_wait(kLinkToken);
    pause = std::min<std::chrono::milliseconds>(pause * 2, kLongestPause);
  }
}

}  // namespace troika::native
