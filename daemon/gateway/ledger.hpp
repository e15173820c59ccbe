// Every admitted request, written down before it is passed on: state_dir/gateway.sqlite. With it, a restart
// knows how much of the rate is used up.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "platform/sqlite.hpp"
#include "policies/admission.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon::gateway {

struct LedgerEntry {
  std::string request;
  WallTime admitted_at;
  std::string replica;
  Epoch epoch;
  Tokens prompt;
  Tokens max_output;
};

class Ledger {
 public:
  // Rows kept; at the planned rate of a tenth a second, eleven days.
  static constexpr std::int64_t kKept = 100000;

  // writable() writes anew after so long: while the last write failed, and else.
  static constexpr Duration kAfterFailure = std::chrono::seconds{1};
  static constexpr Duration kAfterSuccess = std::chrono::seconds{10};

  static Result<Ledger> open(const std::string& path);

  // The request and the state of the admission, in one synchronous commit.
  Status admit(const LedgerEntry& entry, const policies::AdmissionRecord& record);
  // The admission of a request that is in the ledger was decided anew.
  Status renew(const policies::AdmissionRecord& record);
  Status finish(const std::string& request, std::string_view outcome, Tokens completion, WallTime at);
  // It went to another replica before a byte of it reached the client.
  Status replayed(const std::string& request, const std::string& replica, Epoch epoch);
  // What was in flight when the last gateway ended; returns how many.
  Result<std::int64_t> close_lost(WallTime at);

  // Why the last write failed, or of a write that changes nothing, made now where the last one is long ago:
  // so a disk that has room again is noticed, and a full one too.
  Status writable(Instant now);

  // Nothing: no request was ever admitted by this ledger.
  Result<std::optional<policies::AdmissionRecord>> last_record();
  bool created() const { return created_; }             // by this open; no file was there
  std::uint64_t admitted() const { return admitted_; }  // since the ledger began

 private:
  explicit Ledger(platform::Database database) : database_(std::move(database)) {}
  Result<std::uint64_t> read_admitted();
  Status save(const policies::AdmissionRecord& record, std::uint64_t admitted);
  Status noted(Status written, bool proves);

  platform::Database database_;
  std::optional<Error> trouble_;   // of the last write
  std::optional<Instant> probed_;  // by writable()
  std::uint64_t admitted_ = 0;
  bool created_ = false;
};

}  // namespace troika::daemon::gateway
