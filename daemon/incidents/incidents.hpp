// What happened to a replica or node, from its first sign to recovery: findings and actions with their times,
// in the tables incidents* of troika.sqlite. At most one incident of a subject is open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/store/store.hpp"
#include "protocol/messages.hpp"
#include "vocabulary/finding.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon {

class Incidents {
 public:
  // Closed incidents kept; the oldest beyond go (mode 86: an event log that grew to 1.8 million entries).
  static constexpr std::int64_t kKeptIncidents = 2000;
  // Kept of one incident; what comes later is only counted in its last action.
  static constexpr std::int64_t kFindingsEach = 200;
  static constexpr std::int64_t kActionsEach = 300;
  // An answer stays well below protocol::kMaxMessage.
  static constexpr std::uint32_t kMostListed = 1000;
  static constexpr std::size_t kMostListedBytes = 3u << 20;

  explicit Incidents(Store& store) : store_(store) {}

  // Opens one, or adds the findings to the subject's open one; the title stays as it was.
  Status open(const std::string& subject, const std::string& title, const std::vector<Finding>& findings,
              WallTime at);
  // Adds to the subject's open incident, and gives it another title if one is told. False: it has none, and
  // nothing was written.
  Result<bool> note(const std::string& subject, const std::string& action,
                    const std::vector<Finding>& findings, WallTime at, const std::string& title = {});
  Status close(const std::string& subject, const std::string& action, WallTime at);

  Result<bool> is_open(const std::string& subject);
  // Oldest first; of more than the limit, the newest.
  Result<std::vector<protocol::Incident>> list(const protocol::IncidentsRequest& request);

 private:
  Result<std::optional<std::int64_t>> open_id(const std::string& subject);
  Result<std::int64_t> insert(const std::string& subject, const std::string& title, WallTime at);
  Status retitle(std::int64_t incident, const std::string& title);
  Status add_findings(std::int64_t incident, const std::vector<Finding>& findings, WallTime at);
  Status add_action(std::int64_t incident, const std::string& action, WallTime at);
  Status forget_old();
  Status fill(protocol::Incident& incident);

  Store& store_;
};

}  // namespace troika::daemon
