// A leader that is played on a Unix socket, on a thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "platform/channel.hpp"
#include "platform/files.hpp"

namespace troika::cli {

namespace asio = boost::asio;
using platform::ChannelPtr;
using platform::Frame;

inline constexpr Duration kLimit = std::chrono::seconds{20};

// Plays `act` for each connection, on a thread of its own.
class Leader {
 public:
  using Act = std::function<asio::awaitable<void>(ChannelPtr)>;
  explicit Leader(Act act) {
    TROIKA_INVARIANT(platform::make_directories(folder_, 0700).ok());
    auto listening = platform::listen_unix(io_.get_executor(), path_, std::move(act));
    TROIKA_INVARIANT(listening.ok());
    listener_ = *std::move(listening);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Leader() {
    io_.stop();
    thread_.join();
    listener_.reset();
    EXPECT_TRUE(platform::remove_tree(folder_).ok());  // with the lock beside the socket
  }
  Global address() const { return {path_, "", {}}; }

 private:
  std::string folder_ = "/tmp/troika-client-" + platform::random_hex(6);
  std::string path_ = folder_ + "/control.sock";
  asio::io_context io_{1};
  std::unique_ptr<platform::Listener> listener_;
  std::thread thread_;
};

inline Frame message(std::string text) {
  Frame frame;
  frame.payload = std::move(text);
  return frame;
}

// Reads the request, then says these one after the other and closes.
inline Leader::Act saying(std::vector<std::string> texts) {
  return [texts = std::move(texts)](ChannelPtr channel) -> asio::awaitable<void> {
    (void)co_await channel->read(kLimit);
    for (const std::string& text : texts)
      channel->send(message(text));
    co_await channel->flush_and_close(kLimit);
  };
}

}  // namespace troika::cli
