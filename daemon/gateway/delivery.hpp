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

// What is waited for is the engine's progress. A comment that it sends to keep the connection is none.
struct DeliveryLimits {
  // From passing on to a stream's first token. On the planned cluster a chunk of 4096 tokens takes up to 29
  // s, and eight prompts of 8192 may be read one after the other: 464 s.
  Duration first_token = std::chrono::minutes{8};
  // Between two tokens of a stream: others' chunks may be read in between (case E05). And between two bytes
  // of an answer that is not streamed, after its head.
  Duration stall = std::chrono::seconds{120};
  // An answer that is not streamed shows no progress: it has first_token and, for each token that it may
  // write, so long, but never longer than `whole`.
  Duration each_token = std::chrono::seconds{1};
  Duration whole = std::chrono::minutes{60};
  Duration ping = std::chrono::seconds{12};       // mode 83: clients give up on long silence
  Duration after_done = std::chrono::seconds{2};  // from [DONE] to the end of the engine's answer
  std::size_t whole_bytes = 16u << 20;            // of an answer that is not streamed

  Duration whole_answer(Tokens output) const;
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

struct Awaited {
  std::string request;  // the id that error events name
  bool stream = false;  // the client asked for one
  Tokens output;        // as many as it may write
};
asio::awaitable<Delivery> deliver(Exchange& exchange, std::shared_ptr<Upstream> upstream, Awaited what,
                                  DeliveryLimits limits);

}  // namespace troika::daemon::gateway
