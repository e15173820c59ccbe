#include "daemon/gateway/answers.hpp"

#include <nlohmann/json.hpp>

namespace troika::daemon::gateway {
namespace {

using Json = nlohmann::json;

// OpenAI's words for who is to blame.
std::string_view type(Trouble trouble) {
  switch (trouble) {
    case Trouble::RateLimitExceeded:
    case Trouble::InFlightLimit:
      return "rate_limit_error";
    case Trouble::ContextLengthExceeded:
    case Trouble::InvalidRequest:
    case Trouble::UnsupportedByProfile:
    case Trouble::ModelNotFound:
    case Trouble::NotFound:
    case Trouble::MethodNotAllowed:
      return "invalid_request_error";
    case Trouble::NoReplica:
    case Trouble::Draining:
    case Trouble::Overloaded:
    case Trouble::LedgerUnavailable:
    case Trouble::InternalError:
      return "server_error";
    case Trouble::UpstreamFailed:
    case Trouble::UpstreamTimeout:
    case Trouble::UpstreamTruncated:
    case Trouble::UpstreamStalled:
      return "upstream_error";
  }
  return "server_error";
}

}  // namespace

std::string_view code(Trouble trouble) {
  switch (trouble) {
    case Trouble::RateLimitExceeded:
      return "rate_limit_exceeded";
    case Trouble::InFlightLimit:
      return "in_flight_limit";
    case Trouble::ContextLengthExceeded:
      return "context_length_exceeded";
    case Trouble::InvalidRequest:
      return "invalid_request";
    case Trouble::UnsupportedByProfile:
      return "unsupported_by_profile";
    case Trouble::NoReplica:
      return "no_replica";
    case Trouble::Draining:
      return "draining";
    case Trouble::Overloaded:
      return "overloaded";
    case Trouble::LedgerUnavailable:
      return "ledger_unavailable";
    case Trouble::InternalError:
      return "internal_error";
    case Trouble::UpstreamFailed:
      return "upstream_failed";
    case Trouble::UpstreamTimeout:
      return "upstream_timeout";
    case Trouble::UpstreamTruncated:
      return "upstream_truncated";
    case Trouble::UpstreamStalled:
      return "upstream_stalled";
    case Trouble::ModelNotFound:
      return "model_not_found";
    case Trouble::NotFound:
      return "not_found";
    case Trouble::MethodNotAllowed:
      return "method_not_allowed";
  }
  return "internal_error";
}

unsigned http_status(Trouble trouble) {
  switch (trouble) {
    case Trouble::RateLimitExceeded:
    case Trouble::InFlightLimit:
      return 429;
    case Trouble::ContextLengthExceeded:
    case Trouble::InvalidRequest:
    case Trouble::UnsupportedByProfile:
      return 400;
    case Trouble::ModelNotFound:
    case Trouble::NotFound:
      return 404;
    case Trouble::MethodNotAllowed:
      return 405;
    case Trouble::InternalError:
      return 500;
    case Trouble::UpstreamFailed:
    case Trouble::UpstreamTruncated:
      return 502;
    case Trouble::NoReplica:
    case Trouble::Draining:
    case Trouble::Overloaded:
    case Trouble::LedgerUnavailable:
      return 503;
    case Trouble::UpstreamTimeout:
    case Trouble::UpstreamStalled:
      return 504;
  }
  return 500;
}

std::string error_body(Trouble trouble, std::string_view message, std::string_view param) {
  Json error{{"message", message}, {"type", type(trouble)}, {"param", nullptr}, {"code", code(trouble)}};
  if (!param.empty()) error["param"] = param;
  // Parts of the client's request may be in the message, in whatever encoding.
  return Json{{"error", std::move(error)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpAnswer error_answer(Trouble trouble, std::string_view message, std::uint32_t retry_after_s,
                        std::string_view param) {
  HttpAnswer answer;
  answer.status = http_status(trouble);
  answer.body = error_body(trouble, message, param);
  if (retry_after_s > 0) answer.headers.emplace_back("Retry-After", std::to_string(retry_after_s));
  return answer;
}

std::string error_event(Trouble trouble, std::string_view message) {
  return "data: " + error_body(trouble, message) + "\n\n";
}

}  // namespace troika::daemon::gateway
