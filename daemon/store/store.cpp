#include "daemon/store/store.hpp"

#include <chrono>
#include <utility>

#include "daemon/store/schema.hpp"
#include "protocol/codec.hpp"

namespace troika::daemon {
namespace {

std::int64_t millis(WallTime at) {
  return at.time_since_epoch().count();
}
WallTime wall(std::int64_t value) {
  return WallTime{std::chrono::milliseconds{value}};
}

// Epochs and terms are counted up by one; 2^63 of them are out of reach.
std::int64_t signed_count(std::uint64_t count) {
  return static_cast<std::int64_t>(count);
}
std::uint64_t unsigned_count(std::int64_t count) {
  return static_cast<std::uint64_t>(count);
}

std::string text_of(const protocol::Json& json) {
  return json.dump(-1, ' ', false, protocol::Json::error_handler_t::replace);
}

}  // namespace

Result<Store> Store::open(const std::string& path) {
  const auto advise = [&](Error error) {
    error.reason +=
        ". (With an empty one, terms and epochs are learnt again from the agents, replicas count as not "
        "wanted until they are started again, so their running stages are stopped, and earlier incidents are "
        "not listed any more.)";
    return error;
  };
  auto database = platform::Database::open(path, platform::Database::Mode::ReadWrite);
  if (!database.ok()) return advise(database.error());
  if (auto migrated = database->migrate(store_migrations()); !migrated.ok()) return advise(migrated.error());
  return Store{std::move(database).value()};
}

Result<Term> Store::term() {
  TROIKA_TRY(query, database_.prepare("SELECT value FROM meta WHERE key = 'term'"));
  TROIKA_TRY(row, query.step());
  return row ? Term{unsigned_count(query.integer(0))} : Term{};
}

Status Store::save_term(Term term) {
  TROIKA_TRY(statement, database_.prepare("INSERT INTO meta (key, value) VALUES ('term', ?1) "
                                          "ON CONFLICT (key) DO UPDATE SET value = excluded.value"));
  return statement.bind(1, signed_count(term.count)).run();
}

Result<std::vector<policies::StoredReplica>> Store::replicas() {
  TROIKA_TRY(query,
             database_.prepare("SELECT name, desired_running, epoch, proven, breaker_open, ended, released, "
                               "active, failures, kv_capacity FROM replicas ORDER BY name"));
  std::vector<policies::StoredReplica> found;
  while (true) {
    TROIKA_TRY(row, query.step());
    if (!row) return found;
    policies::StoredReplica replica;
    replica.name = query.text(0);
    replica.desired_running = query.integer(1) != 0;
    replica.epoch = Epoch{unsigned_count(query.integer(2))};
    replica.proven = query.integer(3) != 0;
    replica.breaker_open = query.integer(4) != 0;
    replica.ended = query.integer(5) != 0;
    replica.released = query.integer(6) != 0;
    replica.active = query.integer(7) != 0;
    replica.failures = static_cast<std::uint32_t>(query.integer(8));
    replica.kv_capacity = Tokens{unsigned_count(query.integer(9))};
    found.push_back(std::move(replica));
  }
}

Status Store::save_replica(const policies::StoredReplica& replica, Term term, WallTime at,
                           std::string_view reason) {
  return database_.transaction([&]() -> Status {
    TROIKA_TRY(save,
               database_.prepare("INSERT OR REPLACE INTO replicas (name, desired_running, epoch, proven, "
                                 "breaker_open, ended, released, active, failures, kv_capacity) "
                                 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"));
    const auto epoch = signed_count(replica.epoch.count);
    save.bind(1, replica.name);
    save.bind(2, std::int64_t{replica.desired_running});
    save.bind(3, epoch);
    save.bind(4, std::int64_t{replica.proven});
    save.bind(5, std::int64_t{replica.breaker_open});
    save.bind(6, std::int64_t{replica.ended});
    save.bind(7, std::int64_t{replica.released});
    save.bind(8, std::int64_t{replica.active});
    save.bind(9, std::int64_t{replica.failures});
    save.bind(10, signed_count(replica.kv_capacity.count));
    TROIKA_CHECK(save.run());
    if (replica.epoch == Epoch{}) return Done{};
    return save_epoch(replica, term, at, reason);
  });
}

Status Store::save_epoch(const policies::StoredReplica& replica, Term term, WallTime at,
                         std::string_view reason) {
  const auto epoch = signed_count(replica.epoch.count);
  TROIKA_TRY(opened,
             database_.prepare("INSERT INTO epochs (replica, epoch, term, started) VALUES (?1, ?2, ?3, ?4) "
                               "ON CONFLICT (replica, epoch) DO NOTHING"));
  opened.bind(1, replica.name).bind(2, epoch).bind(3, signed_count(term.count)).bind(4, millis(at));
  TROIKA_CHECK(opened.run());
  TROIKA_TRY(superseded,
             database_.prepare("UPDATE epochs SET ended = ?3, reason = 'a later epoch was started' "
                               "WHERE replica = ?1 AND epoch < ?2 AND ended IS NULL"));
  TROIKA_CHECK(superseded.bind(1, replica.name).bind(2, epoch).bind(3, millis(at)).run());
  if (replica.proven) {
    TROIKA_TRY(proven, database_.prepare("UPDATE epochs SET proven_at = ?3 WHERE replica = ?1 AND epoch = ?2 "
                                         "AND proven_at IS NULL"));
    TROIKA_CHECK(proven.bind(1, replica.name).bind(2, epoch).bind(3, millis(at)).run());
  }
  if (replica.ended) {
    TROIKA_TRY(ended, database_.prepare("UPDATE epochs SET ended = ?3, reason = ?4 WHERE replica = ?1 AND "
                                        "epoch = ?2 AND ended IS NULL"));
    TROIKA_CHECK(ended.bind(1, replica.name).bind(2, epoch).bind(3, millis(at)).bind(4, reason).run());
  }
  TROIKA_TRY(forget, database_.prepare("DELETE FROM epochs WHERE replica = ?1 AND epoch <= ?2"));
  return forget.bind(1, replica.name).bind(2, epoch - kKeptEpochs).run();
}

Result<std::vector<EpochRecord>> Store::epochs(const std::string& replica) {
  TROIKA_TRY(query,
             database_.prepare("SELECT epoch, term, started, ifnull(proven_at, 0), ifnull(ended, 0), reason "
                               "FROM epochs WHERE replica = ?1 ORDER BY epoch DESC"));
  query.bind(1, replica);
  std::vector<EpochRecord> found;
  while (true) {
    TROIKA_TRY(row, query.step());
    if (!row) return found;
    found.push_back({replica, Epoch{unsigned_count(query.integer(0))}, Term{unsigned_count(query.integer(1))},
                     wall(query.integer(2)), wall(query.integer(3)), wall(query.integer(4)), query.text(5)});
  }
}

Status Store::save_verification(const Verification& verification) {
  return database_.transaction([&]() -> Status {
    TROIKA_TRY(save, database_.prepare("INSERT INTO verifications (node, replica, at, verdict, done) "
                                       "VALUES (?1, ?2, ?3, ?4, ?5)"));
    TROIKA_CHECK(save.bind(1, verification.node)
                     .bind(2, verification.replica)
                     .bind(3, millis(verification.at))
                     .bind(4, name(verdict_of(verification.done.findings)))
                     .bind(5, text_of(protocol::to_json(verification.done)))
                     .run());
    TROIKA_TRY(forget, database_.prepare("DELETE FROM verifications WHERE id <= ?1"));
    return forget.bind(1, database_.last_insert_id() - kKeptVerifications).run();
  });
}

Result<std::vector<Verification>> Store::last_verifications() {
  TROIKA_TRY(query,
             database_.prepare("SELECT node, replica, at, done FROM verifications WHERE id IN "
                               "(SELECT max(id) FROM verifications GROUP BY node, replica) ORDER BY id"));
  std::vector<Verification> found;
  while (true) {
    TROIKA_TRY(row, query.step());
    if (!row) return found;
    auto done =
        protocol::from_json<protocol::VerifyDone>(protocol::Json::parse(query.text(3), nullptr, false));
    if (!done.ok()) continue;  // written by a version that said it differently; it is only shown
    found.push_back({query.text(0), query.text(1), wall(query.integer(2)), std::move(done).value()});
  }
}

Result<bool> Store::save_stage_event(const std::string& node, const protocol::StageEvent& event,
                                     WallTime at) {
  bool fresh = false;
  auto saved = database_.transaction([&]() -> Status {
    TROIKA_TRY(seen, database_.prepare("SELECT 1 FROM stage_events WHERE event = ?1"));
    seen.bind(1, event.event);
    TROIKA_TRY(known, seen.step());
    if (known) return Done{};
    TROIKA_TRY(save, database_.prepare("INSERT INTO stage_events (event, node, received, stage_event) "
                                       "VALUES (?1, ?2, ?3, ?4)"));
    TROIKA_CHECK(save.bind(1, event.event)
                     .bind(2, node)
                     .bind(3, millis(at))
                     .bind(4, text_of(protocol::to_json(event)))
                     .run());
    fresh = true;
    TROIKA_TRY(forget, database_.prepare("DELETE FROM stage_events WHERE id <= ?1"));
    return forget.bind(1, database_.last_insert_id() - kKeptStageEvents).run();
  });
  if (!saved.ok()) return saved.error();
  return fresh;
}

}  // namespace troika::daemon
