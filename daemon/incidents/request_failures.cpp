#include "daemon/incidents/request_failures.hpp"

namespace troika::daemon {
namespace {

std::string own_subject(const std::string& replica) {
  return "requests of replica " + replica;
}

std::string count_text(std::uint64_t count) {
  return count == 1 ? "1 request failed" : std::to_string(count) + " requests failed";
}

}  // namespace

Status RequestFailures::recall(const std::vector<std::string>& replicas, Instant now) {
  for (const auto& replica : replicas) {
    TROIKA_TRY(open, incidents_.is_open(own_subject(replica)));
    if (open) open_until_[replica] = now + kQuiet;
  }
  return Done{};
}

void RequestFailures::take(const protocol::RequestFailed& failed, Instant now) {
  const auto known = collected_.find(failed.replica);
  if (known == collected_.end() && collected_.size() >= kMostReplicas) return;
  auto& collection = collected_[failed.replica];
  if (collection.count++ == 0) collection.first = now;
  if (collection.findings.size() < kFindingsKept) collection.findings.push_back(failed.finding);
}

Status RequestFailures::write(const std::string& replica, const Collection& collection, Instant now,
                              WallTime wall) {
  const std::string text = count_text(collection.count) + ": " + collection.findings.front().message;
  TROIKA_TRY(noted, incidents_.note("replica " + replica, text, collection.findings, wall));
  if (noted) return Done{};
  TROIKA_CHECK(incidents_.open(own_subject(replica), text, collection.findings, wall));
  open_until_[replica] = now + kQuiet;
  return Done{};
}

Status RequestFailures::tick(Instant now, WallTime wall) {
  for (auto it = collected_.begin(); it != collected_.end();) {
    // Its incident may be short: what belongs to it is written as soon as it is there.
    TROIKA_TRY(told, incidents_.is_open("replica " + it->first));
    if (!told && now - it->second.first < kCollect) {
      ++it;
      continue;
    }
    TROIKA_CHECK(write(it->first, it->second, now, wall));
    it = collected_.erase(it);
  }
  for (auto it = open_until_.begin(); it != open_until_.end();) {
    if (now < it->second) {
      ++it;
      continue;
    }
    TROIKA_CHECK(incidents_.close(own_subject(it->first), "no request failed for a minute", wall));
    it = open_until_.erase(it);
  }
  return Done{};
}

}  // namespace troika::daemon
