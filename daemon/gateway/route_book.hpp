// Where requests go: as the leader told last, kept on disk so that the gateway goes on without a leader.
#pragma once

#include <optional>
#include <string>

#include "protocol/messages.hpp"
#include "vocabulary/result.hpp"

namespace troika::daemon::gateway {

class RouteBook {
 public:
  // An unreadable file is an error that names it; no file is an empty book.
  static Result<RouteBook> open(std::string path);

  // Written down before it is in force. Error "STALE_TERM": older than the one in force, which stays. An
  // equal one is accepted again.
  Status apply(const protocol::Route& route);

  const std::optional<protocol::Route>& route() const { return route_; }
  // The target at a position, if the route has one and is not draining.
  const protocol::RouteTarget* target(std::size_t position) const;

 private:
  explicit RouteBook(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::optional<protocol::Route> route_;
};

}  // namespace troika::daemon::gateway
