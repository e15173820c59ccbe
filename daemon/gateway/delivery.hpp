// Brings one engine's answer to the client, and says how it ended.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "daemon/gateway/answers.hpp"
#include "daemon/gateway/http.hpp"
#include "daemon/gateway/upstream.hpp"
#include "vocabulary/finding.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon::gateway {

struct DeliveryLimits {
  // Until a stream's first byte: a full prefill takes about a minute, and eight may wait in the engine's
  // queue.
  Duration first_byte = std::chrono::minutes{10};
  // Between two bytes of a stream (case E05).
  Duration silence = std::chrono::seconds{120};
  // Until an answer that is not streamed: a full window at a few tokens a second.
  Duration whole = std::chrono::minutes{60};
  Duration ping = std::chrono::seconds{12};       // mode 83: clients give up on long silence
  Duration after_done = std::chrono::seconds{2};  // from [DONE] to the end of the engine's answer
  std::size_t whole_bytes = 16u << 20;            // of an answer that is not streamed
};

enum class End {
  Delivered,  // to its end
  Refused,    // the engine's own refusal was passed on: no fault of the replica
  ClientGone,
  Failed,  // the engine failed; the client has been told if `started`
};

struct Delivery {
  End end{};
  bool started = false;  // a byte reached the client: never to be replayed
  Trouble trouble{};     // of Failed
  Code code{};           // TRUNCATED, STALLED ... of Failed; COMPLETE_NO_DONE: delivered, worth a warning
  std::string reason;    // of Failed
  Tokens completion;
  Duration first_byte_after{-1};  // of this delivery; negative: none came
};

// `stream`: the client asked for one. request: the id that error events name.
asio::awaitable<Delivery> deliver(Exchange& exchange, std::shared_ptr<Upstream> upstream, bool stream,
                                  std::string request, DeliveryLimits limits);

}  // namespace troika::daemon::gateway
