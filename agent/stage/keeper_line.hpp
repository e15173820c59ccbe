// The agent's connection to one keeper: its socket's lines as values.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/streambuf.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "vocabulary/result.hpp"

namespace troika::agent {

namespace asio = boost::asio;

// The keeper's "status" line (agent/keeper/clients.hpp).
struct KeeperStatus {
  enum class State { Running, Stopping, Ended, Cleared };
  State state = State::Running;
  int stage = 0;
  bool requested = false;
  int code = 0;
  int signal = 0;
  std::uint64_t left = 0;
  bool recorded = false;
};
Result<KeeperStatus> parse_keeper_status(std::string_view line);

class KeeperLine {
 public:
  // Errors: nobody listens (yet).
  static asio::awaitable<Result<std::unique_ptr<KeeperLine>>> connect(std::string run_directory);

  // A command of a few bytes; false: the connection is gone.
  bool send(const std::string& command);
  // The next line, without its end. Errors: closed.
  asio::awaitable<Result<std::string>> read_line();
  void close();

 private:
  explicit KeeperLine(asio::local::stream_protocol::socket socket)
      : socket_(std::move(socket)), buffer_(kLongestLine) {}
  static constexpr std::size_t kLongestLine = 8192;
  asio::local::stream_protocol::socket socket_;
  asio::streambuf buffer_;
};

}  // namespace troika::agent
