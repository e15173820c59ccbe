// The texts that the gateway itself answers with: errors in OpenAI's form, the list of models. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/gateway/http.hpp"

namespace troika::daemon::gateway {

enum class Trouble {
  RateLimitExceeded,
  InFlightLimit,
  ContextLengthExceeded,
  InvalidRequest,
  UnsupportedByProfile,
  NoReplica,
  Draining,
  Overloaded,         // the gateway's own memory limit
  LedgerUnavailable,  // the admission cannot be written down, so nothing may be passed on
  InternalError,
  UpstreamFailed,
  UpstreamTimeout,
  UpstreamTruncated,
  UpstreamStalled,
  ModelNotFound,
  NotFound,
  MethodNotAllowed,
};
std::string_view code(Trouble trouble);  // "rate_limit_exceeded"
unsigned http_status(Trouble trouble);

// {"error":{"message","type","param","code"}}; an empty param is null.
std::string error_body(Trouble trouble, std::string_view message, std::string_view param = {});
// retry_after_s 0: without Retry-After.
HttpAnswer error_answer(Trouble trouble, std::string_view message, std::uint32_t retry_after_s = 0,
                        std::string_view param = {});
// The last event of a stream that failed.
std::string error_event(Trouble trouble, std::string_view message);

}  // namespace troika::daemon::gateway
