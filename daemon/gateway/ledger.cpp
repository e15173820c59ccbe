#include "daemon/gateway/ledger.hpp"

#include <unistd.h>

#include <chrono>
#include <utility>
#include <vector>

#include "platform/clock.hpp"

namespace troika::daemon::gateway {
namespace {

constexpr std::string_view kFirst = R"sql(
CREATE TABLE requests (
  id INTEGER PRIMARY KEY,
  request TEXT NOT NULL UNIQUE,
  admitted_at INTEGER NOT NULL,
  replica TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  max_tokens INTEGER NOT NULL,
  replays INTEGER NOT NULL DEFAULT 0,
  outcome TEXT,
  finished_at INTEGER,
  completion_tokens INTEGER
) STRICT;
CREATE INDEX requests_open ON requests (id) WHERE outcome IS NULL;

-- One row: the bucket as of the last admission, and how many there were.
CREATE TABLE admission (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  tat_ns INTEGER NOT NULL,
  boot_id TEXT NOT NULL,
  admitted INTEGER NOT NULL
) STRICT;
)sql";

std::int64_t millis(WallTime at) {
  return at.time_since_epoch().count();
}
std::int64_t signed_count(std::uint64_t count) {
  return static_cast<std::int64_t>(count);
}

}  // namespace

Result<Ledger> Ledger::open(const std::string& path) {
  const auto advise = [&](Error error) {
    error.reason +=
        ". (With an empty one, the rate begins as if its burst were used up, and the record of earlier "
        "requests is not listed any more.)";
    return error;
  };
  const bool created = ::access(path.c_str(), F_OK) != 0;
  auto database = platform::Database::open(path, platform::Database::Mode::ReadWrite);
  if (!database.ok()) return advise(database.error());
  if (auto migrated = database->migrate(std::vector<std::string_view>{kFirst}); !migrated.ok())
    return advise(migrated.error());
  Ledger ledger{std::move(database).value()};
  auto admitted = ledger.read_admitted();
  if (!admitted.ok()) return advise(admitted.error());
  ledger.admitted_ = *admitted;
  ledger.created_ = created;
  return ledger;
}

Result<std::uint64_t> Ledger::read_admitted() {
  TROIKA_TRY(query, database_.prepare("SELECT admitted FROM admission"));
  TROIKA_TRY(row, query.step());
  return row ? static_cast<std::uint64_t>(query.integer(0)) : std::uint64_t{0};
}

Status Ledger::save(const policies::AdmissionRecord& record, std::uint64_t admitted) {
  TROIKA_TRY(bucket, database_.prepare("INSERT OR REPLACE INTO admission (one, tat_ns, boot_id, admitted) "
                                       "VALUES (1, ?1, ?2, ?3)"));
  const std::int64_t tat = record.tat.time_since_epoch().count();
  return bucket.bind(1, tat).bind(2, record.boot_id).bind(3, signed_count(admitted)).run();
}

// Only what needs as much room as an admission proves that there is room for one.
Status Ledger::noted(Status written, bool proves) {
  if (!written.ok())
    trouble_ = written.error();
  else if (proves)
    trouble_.reset();
  return written;
}

Status Ledger::writable(Instant now) {
  const bool due = !probed_ || now - *probed_ >= (trouble_ ? kAfterFailure : kAfterSuccess);
  if (!due) return trouble_ ? Status{*trouble_} : Status{Done{}};
  const Instant begun = platform::now();
  // What an admission writes, so that room for less is not taken for enough.
  auto written = database_.transaction([&]() -> Status {
    TROIKA_TRY(row, database_.prepare("INSERT INTO requests (request, admitted_at, replica, epoch, "
                                      "prompt_tokens, max_tokens, outcome) VALUES ('', 0, '', 0, 0, 0, '')"));
    TROIKA_CHECK(row.run());
    TROIKA_TRY(gone, database_.prepare("DELETE FROM requests WHERE request = ''"));
    return gone.run();
  });
  // From its end: somebody who holds the file makes it wait, and the next one must not follow at once.
  probed_ = now + (platform::now() - begun);
  return noted(std::move(written), true);
}

Status Ledger::renew(const policies::AdmissionRecord& record) {
  return noted(save(record, admitted_), false);
}

Status Ledger::admit(const LedgerEntry& entry, const policies::AdmissionRecord& record) {
  auto written = noted(database_.transaction([&]() -> Status {
    TROIKA_CHECK(save(record, admitted_ + 1));
    TROIKA_TRY(row,
               database_.prepare("INSERT INTO requests (request, admitted_at, replica, epoch, prompt_tokens, "
                                 "max_tokens) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
    row.bind(1, entry.request).bind(2, millis(entry.admitted_at)).bind(3, entry.replica);
    row.bind(4, signed_count(entry.epoch.count)).bind(5, signed_count(entry.prompt.count));
    TROIKA_CHECK(row.bind(6, signed_count(entry.max_output.count)).run());
    TROIKA_TRY(forget, database_.prepare("DELETE FROM requests WHERE id <= ?1"));
    return forget.bind(1, database_.last_insert_id() - kKept).run();
  }),
                       true);
  if (written.ok()) ++admitted_;
  return written;
}

Status Ledger::finish(const std::string& request, std::string_view outcome, Tokens completion, WallTime at) {
  TROIKA_TRY(statement,
             database_.prepare("UPDATE requests SET outcome = ?2, finished_at = ?3, completion_tokens = ?4 "
                               "WHERE request = ?1"));
  statement.bind(1, request).bind(2, outcome).bind(3, millis(at)).bind(4, signed_count(completion.count));
  return noted(statement.run(), false);
}

Status Ledger::replayed(const std::string& request, const std::string& replica, Epoch epoch) {
  TROIKA_TRY(statement,
             database_.prepare("UPDATE requests SET replica = ?2, epoch = ?3, replays = replays + 1 "
                               "WHERE request = ?1"));
  return noted(statement.bind(1, request).bind(2, replica).bind(3, signed_count(epoch.count)).run(), false);
}

Result<std::int64_t> Ledger::close_lost(WallTime at) {
  std::int64_t lost = 0;
  TROIKA_CHECK(database_.transaction([&]() -> Status {
    TROIKA_TRY(count, database_.prepare("SELECT count(*) FROM requests WHERE outcome IS NULL"));
    TROIKA_TRY(row, count.step());
    if (row) lost = count.integer(0);
    TROIKA_TRY(close, database_.prepare("UPDATE requests SET outcome = 'lost', finished_at = ?1 "
                                        "WHERE outcome IS NULL"));
    return close.bind(1, millis(at)).run();
  }));
  return lost;
}

Result<std::optional<policies::AdmissionRecord>> Ledger::last_record() {
  TROIKA_TRY(query, database_.prepare("SELECT tat_ns, boot_id FROM admission"));
  TROIKA_TRY(row, query.step());
  if (!row) return std::optional<policies::AdmissionRecord>{};
  policies::AdmissionRecord record;
  record.tat = Instant{Duration{query.integer(0)}};
  record.boot_id = query.text(1);
  return std::optional{std::move(record)};
}

}  // namespace troika::daemon::gateway
