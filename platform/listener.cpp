#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>

#include "platform/channel.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"
#include "platform/quiet_line.hpp"
#include "platform/streams.hpp"

namespace troika::platform {
namespace {

using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

// While the process is out of file descriptors, accept fails at once, again and again.
constexpr Duration kAcceptPause = std::chrono::milliseconds{100};

// What the accept loop and the connections share; it outlives the Listener until the last of them ends.
template <class Protocol>
struct Door {
  Door(asio::any_io_executor executor, Listener::Serve serve_, ListenLimits limits_)
      : acceptor(executor),
        serve(std::move(serve_)),
        limits(limits_),
        refused(std::make_shared<QuietLine>(executor)),
        crowded(std::make_shared<QuietLine>(executor)) {}

  typename Protocol::acceptor acceptor;
  Listener::Serve serve;
  ListenLimits limits;
  std::string address;
  std::size_t connections = 0;
  bool closed = false;
  std::shared_ptr<TlsContext> tls;    // TCP only
  std::set<TlsStream*> in_handshake;  // TCP only; closed with the door, so that nothing waits for their limit
  std::shared_ptr<QuietLine> refused;
  std::shared_ptr<QuietLine> crowded;
};
using TcpDoor = std::shared_ptr<Door<Tcp>>;
using LocalDoor = std::shared_ptr<Door<Local>>;

// Counts a connection until the last of its coroutine and its channel is gone.
template <class Protocol>
std::shared_ptr<void> take_slot(const std::shared_ptr<Door<Protocol>>& door) {
  ++door->connections;
  return std::shared_ptr<void>(nullptr, [door](void*) { --door->connections; });
}

// Lists a stream while its handshake runs.
class HandshakeEntry {
 public:
  HandshakeEntry(Door<Tcp>& door, TlsStream& stream) : door_(door), stream_(stream) {
    door_.in_handshake.insert(&stream_);
  }
  HandshakeEntry(const HandshakeEntry&) = delete;
  HandshakeEntry& operator=(const HandshakeEntry&) = delete;
  ~HandshakeEntry() { door_.in_handshake.erase(&stream_); }

 private:
  Door<Tcp>& door_;
  TlsStream& stream_;
};

asio::awaitable<Result<Identity>> listed_handshake(TcpDoor door, TlsStreamPtr stream, std::string address) {
  const HandshakeEntry entry(*door, *stream);
  co_return co_await handshake(stream, asio::ssl::stream_base::server, door->tls, address,
                               door->limits.handshake);
}

template <class Protocol>
asio::awaitable<void> serve(std::shared_ptr<Door<Protocol>> door, ChannelPtr channel) {
  // `door` keeps the function object alive while its coroutine runs.
  const std::string who =
      std::string(name(channel->peer().identity.role)) + " " + channel->peer().identity.name;
  try {
    co_await door->serve(std::move(channel));
  } catch (const std::exception& e) {
    log("ended the connection of " + who + " on " + door->address + ": " + e.what());
  }
}

asio::awaitable<void> welcome(TcpDoor door, Tcp::socket socket, std::shared_ptr<void> slot) {
  boost::system::error_code failed;
  const Tcp::endpoint remote = socket.remote_endpoint(failed);
  if (failed) co_return;  // gone already
  const std::string address = text(remote);
  set_tcp_options(socket);
  auto stream = std::make_shared<TlsStream>(std::move(socket), door->tls->context());
  const auto identity = co_await listed_handshake(door, stream, address);
  if (door->closed) co_return;
  if (!identity.ok()) {
    door->refused->say("refused a connection on " + door->address + ": " + identity.error().message());
    co_return;
  }
  Peer peer{*identity, address, 0};
  ChannelPtr channel = make_channel(std::move(stream), std::move(peer), std::move(slot));
  co_await serve(door, std::move(channel));
}

asio::awaitable<void> welcome(LocalDoor door, Local::socket socket, std::shared_ptr<void> slot) {
  auto peer = unix_peer(socket, door->address, {});
  if (!peer.ok() || (peer->uid != ::geteuid() && peer->uid != 0)) {
    door->refused->say("refused a connection on " + door->address + ": " +
                       (peer.ok() ? peer->identity.name + " is neither root nor this process's user"
                                  : peer.error().message()));
    co_return;
  }
  ChannelPtr channel = make_channel(std::move(socket), *std::move(peer), std::move(slot));
  co_await serve(door, std::move(channel));
}

template <class Protocol>
asio::awaitable<void> accept_all(std::shared_ptr<Door<Protocol>> door) {
  while (!door->closed) {
    boost::system::error_code failed;
    auto socket = co_await door->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failed));
    if (door->closed) co_return;
    if (failed) {
      if (failed == asio::error::connection_aborted) continue;
      door->crowded->say("cannot accept connections on " + door->address + ": " + failed.message());
      asio::steady_timer pause(door->acceptor.get_executor(), kAcceptPause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      continue;
    }
    if (door->connections >= door->limits.connections) {
      door->crowded->say("closed a new connection on " + door->address + ": all " +
                         std::to_string(door->limits.connections) + " are in use");
      continue;  // the socket's destructor closes it
    }
    asio::co_spawn(door->acceptor.get_executor(), welcome(door, std::move(socket), take_slot(door)),
                   asio::detached);
  }
}

template <class Protocol>
void close(Door<Protocol>& door) {
  boost::system::error_code ignored;
  door.closed = true;
  door.acceptor.close(ignored);
  for (TlsStream* const stream : door.in_handshake)
    stream->next_layer().close(ignored);
  door.refused->stop();
  door.crowded->stop();
}

class TcpListener final : public Listener {
 public:
  TcpListener(TcpDoor door, std::uint16_t port) : door_(std::move(door)), port_(port) {}
  ~TcpListener() override { close(*door_); }
  std::uint16_t port() const override { return port_; }

 private:
  TcpDoor door_;
  std::uint16_t port_;
};

class UnixListener final : public Listener {
 public:
  UnixListener(LocalDoor door, DirectoryLock lock) : door_(std::move(door)), lock_(std::move(lock)) {}
  ~UnixListener() override {
    close(*door_);
    ::unlink(door_->address.c_str());  // under the lock: nobody else's
  }
  std::uint16_t port() const override { return 0; }

 private:
  LocalDoor door_;
  DirectoryLock lock_;
};

// A socket file that nobody answers on is removed; the caller holds the lock, so that no other Troika process
// is between its bind and its listen.
Status clear_stale_socket(const asio::any_io_executor& executor, const Local::endpoint& endpoint,
                          const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return Done{};
  if (!S_ISSOCK(facts.st_mode)) return Error{"listen on", path, "there is a file that is not a socket"};
  Local::socket probe(executor);
  boost::system::error_code failed;
  probe.connect(endpoint, failed);
  if (!failed) return Error{"listen on", path, "another process answers there"};
  if (failed != asio::error::connection_refused) return Error{"listen on", path, failed.message()};
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return system_error("remove the stale socket", path, errno);
  return Done{};
}

}  // namespace

Result<std::unique_ptr<Listener>> listen_tls(asio::any_io_executor executor, const std::string& host,
                                             std::uint16_t port, std::shared_ptr<TlsContext> tls,
                                             Listener::Serve serve, ListenLimits limits) {
  const std::string wanted =
      (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port);
  boost::system::error_code failed;
  const auto bad = [&] {
    const bool taken = failed == asio::error::address_in_use;
    return Error{"listen on", wanted, taken ? "another process has this address and port" : failed.message()};
  };
  Tcp::resolver resolver(executor);
  const auto found = resolver.resolve(host, std::to_string(port), Tcp::resolver::passive, failed);
  if (failed || found.empty()) return bad();
  const Tcp::endpoint endpoint = *found.begin();
  auto door = std::make_shared<Door<Tcp>>(executor, std::move(serve), limits);
  door->tls = std::move(tls);
  door->acceptor.open(endpoint.protocol(), failed);
  if (!failed) door->acceptor.set_option(asio::socket_base::reuse_address(true), failed);
  if (!failed) door->acceptor.bind(endpoint, failed);
  if (!failed) door->acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return bad();
  const Tcp::endpoint bound = door->acceptor.local_endpoint(failed);
  if (failed) return bad();
  door->address = text(bound);
  asio::co_spawn(executor, accept_all(door), asio::detached);
  return std::unique_ptr<Listener>(std::make_unique<TcpListener>(std::move(door), bound.port()));
}

Result<std::unique_ptr<Listener>> listen_unix(asio::any_io_executor executor, const std::string& path,
                                              Listener::Serve serve, ListenLimits limits) {
  TROIKA_TRY(endpoint, unix_endpoint(path));
  TROIKA_TRY(lock, DirectoryLock::take(path + ".lock"));
  TROIKA_CHECK(clear_stale_socket(executor, endpoint, path));
  auto door = std::make_shared<Door<Local>>(executor, std::move(serve), limits);
  door->address = path;
  boost::system::error_code failed;
  const auto bad = [&] { return Error{"listen on", path, failed.message()}; };
  door->acceptor.open(endpoint.protocol(), failed);
  if (failed) return bad();
  // Before bind, so that at no instant the file has another mode (the umask can only take bits away).
  if (::fchmod(door->acceptor.native_handle(), S_IRUSR | S_IWUSR) != 0)
    return system_error("set the mode of", path, errno);
  door->acceptor.bind(endpoint, failed);
  if (!failed) door->acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return bad();
  asio::co_spawn(executor, accept_all(door), asio::detached);
  return std::unique_ptr<Listener>(std::make_unique<UnixListener>(std::move(door), std::move(lock)));
}

}  // namespace troika::platform
