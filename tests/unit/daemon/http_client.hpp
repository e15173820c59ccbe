// A blocking HTTP client of a few lines, so that tests see the bytes that came.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace troika::daemon {

class Connected {
 public:
  explicit Connected(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ok_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;
  ~Connected() { close(); }

  bool ok() const { return ok_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // What comes within `limit`; empty: nothing. closed() tells whether the end was met.
  std::string some(std::chrono::milliseconds limit = std::chrono::seconds{20}) {
    pollfd wait{fd_, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(limit.count())) <= 0) return {};
    std::string buffer(64u << 10, '\0');
    const auto got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (got <= 0) closed_ = true;
    buffer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return buffer;
  }
  bool closed() const { return closed_; }
  // Reads on until `got` holds `text` so many times; false: the end, or nothing for a while.
  bool read_until(std::string& got, std::string_view text, int times = 1) {
    const auto count = [&] {
      int found = 0;
      for (auto at = got.find(text); at != std::string::npos; at = got.find(text, at + text.size()))
        ++found;
      return found;
    };
    while (count() < times) {
      const auto piece = some();
      if (piece.empty()) return false;
      got += piece;
    }
    return true;
  }
  std::string to_the_end(std::chrono::milliseconds limit = std::chrono::seconds{20}) {
    std::string all;
    while (!closed_) {
      const auto piece = some(limit);
      if (piece.empty()) break;
      all += piece;
    }
    return all;
  }

 private:
  int fd_;
  bool ok_ = false;
  bool closed_ = false;
};

struct Reply {
  int status = 0;
  std::string head;    // lower case is not made of it
  std::string body;    // chunks put together
  bool whole = false;  // by Content-Length or the last chunk

  std::string header(const std::string& name) const {
    const auto at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return {};
    const auto begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

// Reads one answer from the connection, of which `raw` is there already; bytes behind it are dropped.
inline Reply read_reply(Connected& connection, std::string raw = {}) {
  constexpr auto limit = std::chrono::seconds{20};
  Reply reply;
  std::size_t end = std::string::npos;
  while ((end = raw.find("\r\n\r\n")) == std::string::npos) {
    const auto piece = connection.some(limit);
    if (piece.empty()) {
      reply.head = raw;
      return reply;
    }
    raw += piece;
  }
  reply.head = raw.substr(0, end + 2);
  reply.status = std::atoi(reply.head.c_str() + 9);
  std::string rest = raw.substr(end + 4);
  if (reply.header("Transfer-Encoding") == "chunked") {
    while (true) {
      const auto line = rest.find("\r\n");
      if (line != std::string::npos) {
        const auto size = std::strtoul(rest.c_str(), nullptr, 16);
        if (rest.size() >= line + 2 + size + 2) {
          reply.body += rest.substr(line + 2, size);
          rest.erase(0, line + 2 + size + 2);
          if (size == 0) {
            reply.whole = true;
            return reply;
          }
          continue;
        }
      }
      const auto piece = connection.some(limit);
      if (piece.empty()) return reply;
      rest += piece;
    }
  }
  const auto length = std::strtoul(reply.header("Content-Length").c_str(), nullptr, 10);
  while (rest.size() < length) {
    const auto piece = connection.some(limit);
    if (piece.empty()) break;
    rest += piece;
  }
  reply.body = rest.substr(0, length);
  reply.whole = reply.body.size() == length;
  return reply;
}

inline std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

inline Reply ask(std::uint16_t port, const std::string& request) {
  Connected connection(port);
  EXPECT_TRUE(connection.ok());
  EXPECT_TRUE(connection.send(request));
  return read_reply(connection);
}

}  // namespace troika::daemon
