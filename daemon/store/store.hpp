// What the leader must not forget: state_dir/troika.sqlite. One connection, one writer, synchronous commits.
// An error of a write means that nothing of it is there: whoever gets one must not act on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/sqlite.hpp"
#include "policies/lifecycle.hpp"
#include "protocol/messages.hpp"
#include "vocabulary/finding.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon {

// One node's answer to one Verify.
struct Verification {
  std::string node;
  std::string replica;
  WallTime at;
  protocol::VerifyDone done;
};

// One start of a replica, for the record.
struct EpochRecord {
  std::string replica;
  Epoch epoch;
  Term term;
  WallTime started;
  WallTime proven_at{};  // zero: never
  WallTime ended{};      // zero: not known to have ended
  std::string reason;    // why it ended
};

class Store {
 public:
  // Rows kept of what only people read; the oldest beyond go. Some weeks of a cluster that fails every few
  // minutes.
  static constexpr std::int64_t kKeptVerifications = 2000;
  static constexpr std::int64_t kKeptStageEvents = 20000;
  static constexpr std::int64_t kKeptEpochs = 5000;

  // Creates the file or brings an older one up to date. A file that is not a sound database is left as it is,
  // and the error says what to do about it.
  static Result<Store> open(const std::string& path);

  Result<Term> term();
  Status save_term(Term term);

  Result<std::vector<policies::StoredReplica>> replicas();
  // Also keeps the history of epochs: a higher epoch opens a record, `proven` dates it, `ended` closes it
  // with the reason given then.
  Status save_replica(const policies::StoredReplica& replica, Term term, WallTime at,
                      std::string_view reason);
  Result<std::vector<EpochRecord>> epochs(const std::string& replica);  // newest first

  Status save_verification(const Verification& verification);
  Result<std::vector<Verification>> last_verifications();  // the newest of each node and replica

  // False: this event was recorded before.
  Result<bool> save_stage_event(const std::string& node, const protocol::StageEvent& event, WallTime at);

  // The same connection, for the other tables of this file (incidents).
  platform::Database& database() { return database_; }

 private:
  explicit Store(platform::Database database) : database_(std::move(database)) {}
  Status save_epoch(const policies::StoredReplica& replica, Term term, WallTime at, std::string_view reason);

  platform::Database database_;
};

}  // namespace troika::daemon
