#include "agent/stage/keeper_line.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <charconv>
#include <istream>

#include "agent/keeper/record.hpp"
#include "platform/unique_fd.hpp"

namespace troika::agent {
namespace {

// Value of "KEY=" in a line of words.
std::string_view value_of(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const std::size_t end = line.find(' ');
    const std::string_view word = line.substr(0, end);
    if (word.size() > key.size() && word.substr(0, key.size()) == key && word[key.size()] == '=')
      return word.substr(key.size() + 1);
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  return {};
}

template <class Number>
void number(std::string_view line, std::string_view key, Number& value) {
  const std::string_view text = value_of(line, key);
  std::from_chars(text.data(), text.data() + text.size(), value);
}

}  // namespace

Result<KeeperStatus> parse_keeper_status(std::string_view line) {
  const std::string_view state = value_of(line, "state");
  KeeperStatus status;
  if (state == "running")
    status.state = KeeperStatus::State::Running;
  else if (state == "stopping")
    status.state = KeeperStatus::State::Stopping;
  else if (state == "ended")
    status.state = KeeperStatus::State::Ended;
  else if (state == "cleared")
    status.state = KeeperStatus::State::Cleared;
  else
    return Error{"read the keeper's status", std::string(line), "no state that is known here"};
  number(line, "stage", status.stage);
  number(line, "code", status.code);
  number(line, "signal", status.signal);
  number(line, "left", status.left);
  status.requested = value_of(line, "requested") == "1";
  status.recorded = value_of(line, "recorded") == "1";
  return status;
}

asio::awaitable<Result<std::unique_ptr<KeeperLine>>> KeeperLine::connect(std::string run_directory) {
  // Through the directory's descriptor: a socket's path holds 107 bytes, a run directory's may be longer.
  const platform::UniqueFd directory{::open(run_directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!directory) co_return system_error("open the run directory", run_directory, errno);
  const std::string path = "/proc/self/fd/" + std::to_string(directory.get()) + "/" + keeper::kSocketFile;
  asio::local::stream_protocol::socket socket{co_await asio::this_coro::executor};
  boost::system::error_code error;
  co_await socket.async_connect(asio::local::stream_protocol::endpoint{path},
                                asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return Error{"reach the keeper", run_directory, error.message()};
  co_return std::unique_ptr<KeeperLine>{new KeeperLine{std::move(socket)}};
}

bool KeeperLine::send(const std::string& command) {
  const std::string line = command + "\n";
  // A handful of short commands never fills the socket's buffer.
  return ::send(socket_.native_handle(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(line.size());
}

asio::awaitable<Result<std::string>> KeeperLine::read_line() {
  boost::system::error_code error;
  co_await asio::async_read_until(socket_, buffer_, '\n', asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return Error{"read from", "the keeper", error.message()};
  std::istream stream{&buffer_};
  std::string line;
  std::getline(stream, line);
  co_return line;
}

void KeeperLine::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace troika::agent
