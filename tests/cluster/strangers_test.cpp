// Garbage on every port and certificates of the wrong role change nothing.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstring>
#include <random>

#include "platform/channel.hpp"
#include "platform/pki.hpp"
#include "protocol/codec.hpp"
#include "tests/cluster/cluster.hpp"

namespace troika::local {
namespace {

namespace asio = boost::asio;
using platform::ChannelPtr;
using platform::Frame;
using platform::Role;
using platform::UniqueFd;

std::string frame_of(std::string_view payload, char kind) {
  const auto size = static_cast<std::uint32_t>(payload.size());
  std::string out;
  for (const int shift : {24, 16, 8, 0})
    out += static_cast<char>((size >> shift) & 0xFF);
  return out + kind + std::string(payload);
}

std::vector<std::string> garbage() {
  std::mt19937 random(7);  // the same in every run
  std::string noise(4096, '\0');
  for (char& byte : noise)
    byte = static_cast<char>(random());
  return {
      noise,
      std::string(100'000, 'A'),
      std::string(64, '\0'),
      "GET / HTTP/1.1\r\n",  // and nothing more
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n{",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\nffffffffffffffff\r\n",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n\xff\xfe\xfd",
      "\x16\x03\x01\x02" + noise.substr(0, 200),  // looks like the beginning of TLS
      frame_of("{\"v\":[99,0],\"type\":\"status_request\",\"id\":1}", '\0'),
      frame_of("{\"v\":[1,0],\"type\":\"no_such_thing\",\"id\":1}", '\0'),
      frame_of(std::string(200, '['), '\0'),
      frame_of("{\"v\":[1,0],\"type\":\"command\",\"id\":1,\"verb\":7}", '\0'),
      frame_of("x", '\7'),
      std::string("\xff\xff\xff\xff\0", 5),  // a frame of 4 GiB
  };
}

// Sends it all, closes its side and reads until the peer has had its say (or a short while has passed).
void throw_at(UniqueFd fd, const std::string& bytes) {
  ASSERT_TRUE(fd);
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;  // it closed already
    sent += static_cast<std::size_t>(n);
  }
  ::shutdown(fd.get(), SHUT_WR);
  pollfd waiting{fd.get(), POLLIN, 0};
  char buffer[4096];
  while (::poll(&waiting, 1, 300) == 1 && ::recv(fd.get(), buffer, sizeof buffer, 0) > 0) {
  }
}

UniqueFd tcp(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

UniqueFd local_socket(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

class Strangers : public ClusterTest {
 protected:
  // Those of the cluster on which something listens now.
  std::vector<std::uint16_t> open_ports() const {
    const Ports& ports = cluster_->ports();
    std::vector<std::uint16_t> out{ports.leader, ports.gateway, ports.metrics};
    for (const auto& [name, node] : ports.nodes)
      for (const std::uint16_t port : {node.relay, node.api, node.link})
        if (tcp(port)) out.push_back(port);
    return out;
  }

  // What a peer with these files gets for its first message; empty: no connection, or closed without a word.
  template <class Message>
  std::string answer_to(std::uint16_t port, Role expected, const std::string& name, const Message& message,
                        Role& peer) const {
    const std::string pki = cluster_->layout().pki();
    const auto tls =
        platform::TlsContext::load({pki + "/ca.crt", pki + "/" + name + ".crt", pki + "/" + name + ".key"});
    EXPECT_TRUE(tls.ok()) << tls.error().message();
    if (!tls.ok()) return "";
    asio::io_context io{1};
    std::string got;
    asio::co_spawn(io, first_answer(port, *tls, expected, protocol::encode(message, 1), got, peer),
                   [](const std::exception_ptr&) {});
    io.run();
    return got;
  }

 private:
  static asio::awaitable<void> first_answer(std::uint16_t port, std::shared_ptr<platform::TlsContext> tls,
                                            Role expected, std::string message, std::string& got,
                                            Role& peer) {
    const Duration limit = patience(std::chrono::seconds{10});
    auto dialled = co_await platform::dial_tls("127.0.0.1", port, tls, expected, "", limit);
    if (!dialled.ok()) co_return;
    const ChannelPtr channel = *dialled;
    peer = channel->peer().identity.role;
    Frame frame;
    frame.payload = std::move(message);
    channel->send(std::move(frame));
    const auto answer = co_await channel->read(limit);
    if (answer.ok()) got = answer->payload;
    channel->close();
  }
};

TEST_F(Strangers, GarbageOnEveryPortChangesNothing) {
  make();
  start();
  serve();
  const auto before = status();
  const auto ports = open_ports();
  EXPECT_GE(ports.size(), 3 + 6 + 2u) << "leader, gateway, metrics, relays, and the API of each rank 0";
  for (const std::uint16_t port : ports)
    for (const std::string& bytes : garbage())
      throw_at(tcp(port), bytes);
  for (const std::string& bytes : garbage())
    throw_at(local_socket(cluster_->layout().socket()), bytes);

  const auto after =
      wait("all serves", [](const auto& s) { return demo::all_connected(s) && demo::all_serve(s); });
  EXPECT_EQ(demo::running_stages(after), demo::running_stages(before));
  EXPECT_EQ(after.leader_pid, before.leader_pid);
  EXPECT_EQ(after.gateway.pid, before.gateway.pid);
  EXPECT_TRUE(after.open_incidents.empty());
  const auto outcome = ask();
  EXPECT_TRUE(outcome.whole()) << demo::described(outcome);
  end();
}

TEST_F(Strangers, ACertificateOpensOnlyTheDoorsOfItsRole) {
  make();
  start();
  serve();
  const auto before = status();
  const std::uint16_t leader = cluster_->ports().leader;
  const std::uint16_t relay = cluster_->ports().nodes.at("n1").relay;
  Role peer{};

  // The operator's own door is open to it.
  const std::string good = answer_to(leader, Role::Leader, "operator", protocol::StatusRequest{}, peer);
  EXPECT_NE(good.find("\"status_reply\""), std::string::npos) << good;
  // An agent may not ask as an operator, nor an operator come as an agent.
  const std::string asked = answer_to(leader, Role::Leader, "n1", protocol::StatusRequest{}, peer);
  EXPECT_EQ(asked.find("\"status_reply\""), std::string::npos) << asked;
  protocol::Command stop;
  stop.verb = protocol::Verb::Stop;
  stop.no_wait = true;
  const std::string commanded = answer_to(leader, Role::Leader, "n1", stop, peer);
  EXPECT_EQ(commanded.find("\"command_done\""), std::string::npos) << commanded;
  protocol::Hello hello;
  hello.cluster = cluster_->shape().cluster;
  hello.node = "n1";
  const std::string hailed = answer_to(leader, Role::Leader, "operator", hello, peer);
  EXPECT_EQ(hailed.find("\"welcome\""), std::string::npos) << hailed;
  // Another node's name than the certificate's.
  const std::string lied = answer_to(leader, Role::Leader, "n2", hello, peer);
  EXPECT_EQ(lied.find("\"welcome\""), std::string::npos) << lied;
  // Only the leader's gateway may use a relay.
  protocol::RelayRequest request;
  request.replica = "a";
  request.epoch = demo::replica(before, "a")->epoch;
  request.method = "GET";
  request.path = "/v1/models";
  for (const char* const name : {"operator", "n2"}) {
    const std::string relayed = answer_to(relay, Role::Agent, name, request, peer);
    EXPECT_EQ(relayed.find("\"relay_head\""), std::string::npos) << name << " " << relayed;
  }
  const std::string routed = answer_to(relay, Role::Agent, "leader", request, peer);
  EXPECT_NE(routed.find("\"relay_head\""), std::string::npos) << routed;

  const auto after =
      wait("all serves", [](const auto& s) { return demo::all_connected(s) && demo::all_serve(s); });
  EXPECT_EQ(demo::running_stages(after), demo::running_stages(before));
  end();
}

}  // namespace
}  // namespace troika::local
