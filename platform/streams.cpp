#include "platform/streams.hpp"

#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>

#include "platform/certificate.hpp"
#include "platform/deadline.hpp"

namespace troika::platform {
namespace {

std::string handshake_reason(TlsStream& stream, const boost::system::error_code& error) {
  const long verified = SSL_get_verify_result(stream.native_handle());
  if (verified != X509_V_OK)
    return std::string("its certificate is refused: ") + X509_verify_cert_error_string(verified);
  if (error == asio::error::eof || error == asio::error::connection_reset ||
      error == asio::ssl::error::stream_truncated)
    return "closed by the peer during the handshake";
  return error.message();
}

}  // namespace

std::string text(const asio::ip::tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

void set_tcp_options(TcpSocket& socket) {
  constexpr int kIdle = 15, kInterval = 10, kCount = 3;  // seconds, seconds, probes
  constexpr int kUnackedMs = 45'000;                     // the same limit while data is on its way
  boost::system::error_code ignored;                     // a connection without them works
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, int value) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, kIdle);
  set(TCP_KEEPINTVL, kInterval);
  set(TCP_KEEPCNT, kCount);
  set(TCP_USER_TIMEOUT, kUnackedMs);
}

asio::awaitable<Result<Identity>> handshake(TlsStreamPtr stream, asio::ssl::stream_base::handshake_type type,
                                            std::shared_ptr<TlsContext> tls, std::string address,
                                            Duration limit) {
  boost::system::error_code error;
  const auto close = [&stream] {
    boost::system::error_code ignored;
    stream->lowest_layer().close(ignored);
  };
  const auto failed = [&](std::string reason) {
    close();
    return Error{"agree on TLS with", address, std::move(reason)};
  };
  {
    const Deadline deadline(stream->get_executor(), limit, [stream] {
      boost::system::error_code ignored;
      stream->lowest_layer().close(ignored);
    });
    co_await stream->async_handshake(type, asio::redirect_error(asio::use_awaitable, error));
    if (deadline.expired()) co_return failed("no answer in time");
  }
  if (error) co_return failed(handshake_reason(*stream, error));
  const CertificatePtr certificate{SSL_get1_peer_certificate(stream->native_handle())};
  if (certificate == nullptr) co_return failed("it showed no certificate");
  const auto identity = identity_of(certificate.get());
  if (!identity.ok()) co_return failed(identity.error().message());
  if (identity->cluster != tls->identity().cluster)
    co_return failed("its certificate is of cluster " + identity->cluster + ", expected " +
                     tls->identity().cluster);
  co_return identity;
}

Result<Peer> unix_peer(UnixSocket& socket, const std::string& path, const std::string& cluster) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return system_error("read the credentials of the peer of", path, errno);
  Peer peer;
  peer.identity =
      Identity{cluster, Role::Local,
               "uid " + std::to_string(credentials.uid) + " pid " + std::to_string(credentials.pid)};
  peer.address = path;
  peer.uid = credentials.uid;
  return peer;
}

Result<asio::local::stream_protocol::endpoint> unix_endpoint(const std::string& path) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.size() > kLongest)
    return Error{
        "use the socket", path,
        "1 to " + std::to_string(kLongest) + " bytes are allowed, it has " + std::to_string(path.size())};
  return asio::local::stream_protocol::endpoint(path);
}

}  // namespace troika::platform
