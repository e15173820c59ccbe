#include "daemon/gateway/route_book.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "platform/files.hpp"
#include "policies/fencing.hpp"
#include "protocol/codec.hpp"

namespace troika::daemon::gateway {
namespace {

constexpr Bytes kMostRoute{1u << 20};

policies::RouteFence fence(const std::optional<protocol::Route>& route) {
  return route ? policies::RouteFence{route->term, route->generation} : policies::RouteFence{};
}

}  // namespace

Result<RouteBook> RouteBook::open(std::string path) {
  RouteBook book{std::move(path)};
  struct stat facts {};
  if (::stat(book.path_.c_str(), &facts) != 0 && errno == ENOENT) return book;
  TROIKA_TRY(text, platform::read_file(book.path_, kMostRoute));
  auto route = protocol::from_json<protocol::Route>(protocol::Json::parse(text, nullptr, false));
  if (!route.ok())
    return Error{"read the stored route", book.path_,
                 route.error().message() + ". Remove it: the leader sends it again"};
  book.route_ = std::move(route).value();
  return book;
}

Status RouteBook::apply(const protocol::Route& route) {
  const auto in_force = fence(route_);
  switch (policies::check_route(in_force, {route.term, route.generation})) {
    case policies::FenceVerdict::Accept:
      break;
    case policies::FenceVerdict::Repeat:
      return Done{};
    case policies::FenceVerdict::StaleTerm:
    case policies::FenceVerdict::StaleEpoch:
    case policies::FenceVerdict::Busy:
      return Error{"apply the route", "STALE_TERM",
                   "term " + std::to_string(route.term.count) + " generation " +
                       std::to_string(route.generation) + " is older than term " +
                       std::to_string(in_force.term.count) + " generation " +
                       std::to_string(in_force.generation)};
  }
  TROIKA_CHECK(platform::write_file_durably(path_, protocol::to_json(route).dump(2) + "\n", 0600));
  route_ = route;
  return Done{};
}

const protocol::RouteTarget* RouteBook::target(std::size_t position) const {
  if (!route_ || route_->draining || position >= route_->targets.size()) return nullptr;
  return &route_->targets[position];
}

}  // namespace troika::daemon::gateway
