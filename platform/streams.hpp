// Between listener, dial and channel, inside platform/: connected streams become channels.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <string>

#include "platform/channel.hpp"

namespace troika::platform {

using TcpSocket = asio::ip::tcp::socket;
using UnixSocket = asio::local::stream_protocol::socket;
using TlsStream = asio::ssl::stream<TcpSocket>;
using TlsStreamPtr = std::shared_ptr<TlsStream>;

// `slot` is kept as long as the channel: it counts the connection.
ChannelPtr make_channel(TlsStreamPtr stream, Peer peer, std::shared_ptr<void> slot);
ChannelPtr make_channel(UnixSocket socket, Peer peer, std::shared_ptr<void> slot);

std::string text(const asio::ip::tcp::endpoint& endpoint);  // "host:port", IPv6 in brackets

// No Nagle delay, and keepalive that finds a dead peer within a minute.
void set_tcp_options(TcpSocket& socket);

// The handshake of one side, at most `limit` long, and who is at the other end. Its cluster is the context's;
// role and name are for the caller to judge. The stream is closed on any error.
asio::awaitable<Result<Identity>> handshake(TlsStreamPtr stream, asio::ssl::stream_base::handshake_type type,
                                            std::shared_ptr<TlsContext> tls, std::string address,
                                            Duration limit);

// Of a connected Unix socket: "uid UID pid PID", from SO_PEERCRED.
Result<Peer> unix_peer(UnixSocket& socket, const std::string& path, const std::string& cluster);

// Path as an endpoint; paths over the system's limit (107 bytes) are an error.
Result<asio::local::stream_protocol::endpoint> unix_endpoint(const std::string& path);

}  // namespace troika::platform
