#include "cli/local/http.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>

#include "platform/clock.hpp"
#include "platform/unique_fd.hpp"

namespace troika::local {
namespace {

using platform::UniqueFd;

struct Head {
  unsigned status = 0;
  std::map<std::string, std::string> headers;
};

std::string place(const std::string& host, std::uint16_t port) {
  return host + ":" + std::to_string(port);
}

Result<UniqueFd> connect_to(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    return Error{"connect to", place(host, port), "an IPv4 address is expected"};
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("connect to", place(host, port), errno);
  // On this machine a connection is made or refused at once.
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_error("connect to", place(host, port), errno);
  return fd;
}

Status send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("send", "the request", errno);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return Done{};
}

constexpr int kAskStopEvery_ms = 50;

// Until a byte can be read. Errors: the limit passed, or the request is stopped.
Status wait_for_byte(int fd, const HttpRequest& request) {
  const Instant deadline = platform::now() + request.silence;
  while (true) {
    if (request.stop && request.stop()) return Error{"read", "the answer", "interrupted"};
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, kAskStopEvery_ms) > 0) return Done{};
    if (platform::now() > deadline)
      return Error{"read", "the answer",
                   "no byte for " + std::to_string(request.silence / std::chrono::seconds{1}) + " s"};
  }
}

// Appends to `out`; 0: the peer closed.
Result<std::size_t> receive(int fd, std::string& out, const HttpRequest& request) {
  TROIKA_CHECK(wait_for_byte(fd, request));
  char buffer[16384];
  ssize_t got = 0;
  do
    got = ::recv(fd, buffer, sizeof buffer, 0);
  while (got < 0 && errno == EINTR);
  if (got < 0) return system_error("read", "the answer", errno);
  out.append(buffer, static_cast<std::size_t>(got));
  return static_cast<std::size_t>(got);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

Result<Head> parse_head(std::string_view text) {
  Head head;
  const std::size_t line_end = text.find('\n');
  const std::string_view first = text.substr(0, line_end);
  const Error bad{"read", "the answer's head", "\"" + std::string(trimmed(first)) + "\" is no status line"};
  if (!first.starts_with("HTTP/1.") || first.size() < 12) return bad;
  const auto [end, error] = std::from_chars(first.data() + 9, first.data() + 12, head.status);
  if (error != std::errc{} || end != first.data() + 12) return bad;
  text.remove_prefix(line_end + 1);
  while (!text.empty()) {
    const std::size_t stop = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, stop);
    text.remove_prefix(std::min(stop + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    head.headers[name] = trimmed(line.substr(colon + 1));
  }
  return head;
}

std::string request_text(const std::string& host, std::uint16_t port, const HttpRequest& request) {
  std::string out = request.method + " " + request.path + " HTTP/1.1\r\nHost: " + place(host, port) +
                    "\r\nConnection: close\r\nAccept: */*\r\n";
  if (!request.body.empty() || request.method == "POST")
    out +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
  return out + "\r\n" + request.body;
}

}  // namespace

Result<HttpReply> http(const std::string& host, std::uint16_t port, const HttpRequest& request,
                       const BodyReader& reader) {
  TROIKA_TRY(fd, connect_to(host, port));
  // The answer is read even where the peer would not take the whole request: it may say why.
  const Status sent = send_all(fd.get(), request_text(host, port, request));
  std::string bytes;
  std::size_t head_end = std::string::npos;
  while ((head_end = bytes.find("\r\n\r\n")) == std::string::npos) {
    if (bytes.size() > kMaxHead.count)
      return Error{"read", "the answer's head", "over " + std::to_string(kMaxHead.count) + " bytes"};
    TROIKA_TRY(got, receive(fd.get(), bytes, request));
    if (got == 0) return sent.ok() ? Error{"read", "the answer", "closed by the peer"} : sent.error();
  }
  TROIKA_TRY(head, parse_head(std::string_view(bytes).substr(0, head_end)));
  TROIKA_TRY(decoder, BodyDecoder::of(head.status, head.headers));

  HttpReply reply{head.status, std::move(head.headers), "", false, ""};
  std::string piece = bytes.substr(head_end + 4);
  std::uint64_t sum = 0;
  while (true) {
    std::string body;
    if (const Status fed = decoder.feed(piece, body); !fed.ok()) {
      reply.trouble = fed.error().reason;
      return reply;
    }
    sum += body.size();
    const bool more = body.empty() || !reader || reader(body);
    if (!reader) reply.body += body;
    if (decoder.complete()) break;
    if (!more || sum > kMaxBody.count) {
      reply.trouble = more ? "the body is over the limit" : "closed by this side";
      return reply;
    }
    piece.clear();
    const auto got = receive(fd.get(), piece, request);
    if (!got.ok()) {
      reply.trouble = got.error().reason;
      return reply;
    }
    if (*got == 0) {
      decoder.closed();
      if (!decoder.complete()) reply.trouble = "the connection was closed before the end of the body";
      break;
    }
  }
  reply.complete = decoder.complete();
  return reply;
}

}  // namespace troika::local
