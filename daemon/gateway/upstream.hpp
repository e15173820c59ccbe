// One request on its way through an agent's relay to the stage of rank 0, and its answer.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "platform/channel.hpp"
#include "protocol/messages.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon::gateway {

namespace asio = boost::asio;

struct Chunk {
  std::string bytes;
};
// The answer is over: `complete` by the rules of HTTP, else `error` says what cut it.
struct Over {
  bool complete = false;
  std::string error;
};
using Part = std::variant<protocol::RelayHead, Chunk, Over>;

class Upstream : public std::enable_shared_from_this<Upstream> {
 public:
  // Read ahead of the client; beyond, the agent waits (and with it the engine's socket).
  static constexpr std::size_t kReadAhead = 8;

  Upstream(asio::any_io_executor executor, platform::ChannelPtr channel);

  // Passes the request on; everything is handed to the system when this returns. Once, and first.
  asio::awaitable<Status> pass(protocol::RelayRequest request, std::string_view body, Duration limit);
  // The next part, or nothing after `limit`; nothing is lost by that. After Over, only Over comes.
  asio::awaitable<std::optional<Part>> next(Duration limit);
  // Ends it: the agent closes its side towards the engine, which aborts. Idempotent.
  void cancel();

 private:
  asio::awaitable<void> pump();
  void put(Part part);

  asio::any_io_executor executor_;
  platform::ChannelPtr channel_;
  std::deque<Part> parts_;
  std::optional<Over> over_;
  asio::steady_timer filled_;  // cancelled when a part came
  asio::steady_timer taken_;   // cancelled when one was taken
};

}  // namespace troika::daemon::gateway
