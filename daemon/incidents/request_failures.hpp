// Requests that an engine failed, as the gateway tells of them. They come in crowds and usually a moment
// before the agent tells why, so they are collected: for the replica's incident as soon as it has one, else
// for some seconds and then for an incident of their own, which closes when no more come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/incidents/incidents.hpp"
#include "protocol/messages.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon {

class RequestFailures {
 public:
  static constexpr Duration kCollect = std::chrono::seconds{3};
  static constexpr Duration kQuiet = std::chrono::seconds{60};
  static constexpr std::size_t kFindingsKept = 8;   // of one collection; the others are counted
  static constexpr std::size_t kMostReplicas = 64;  // collections at a time

  explicit RequestFailures(Incidents& incidents) : incidents_(incidents) {}

  // Incidents that an earlier leader left open are watched on.
  Status recall(const std::vector<std::string>& replicas, Instant now);
  void take(const protocol::RequestFailed& failed, Instant now);
  Status tick(Instant now, WallTime wall);

 private:
  struct Collection {
    Instant first;
    std::uint64_t count = 0;
    std::vector<Finding> findings;
  };
  Status write(const std::string& replica, const Collection& collection, Instant now, WallTime wall);

  Incidents& incidents_;
  std::map<std::string, Collection> collected_;  // by replica
  std::map<std::string, Instant> open_until_;    // incidents of their own, by replica
};

}  // namespace troika::daemon
