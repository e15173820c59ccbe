#include "platform/sqlite.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace troika::platform {
namespace {

constexpr int kBusyMs = 5000;  // another process (an operator's sqlite3) may hold the file for a moment

std::string path_of(sqlite3* db) {
  const char* const path = sqlite3_db_filename(db, "main");
  return path != nullptr && *path != '\0' ? path : "the database";
}

std::string reason_of(sqlite3* db, int code) {
  std::string reason = sqlite3_errmsg(db);
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return reason + " (no space left on the device)";
    case SQLITE_IOERR: {
      const int system = sqlite3_system_errno(db);
      return system != 0 ? reason + " (" + system_error("", "", system).reason + ")" : reason;
    }
    default:
      return reason;
  }
}

Error error_of(sqlite3* db, int code, std::string doing) {
  return Error{std::move(doing), path_of(db), reason_of(db, code)};
}

int no_rows(void*, int, char**, char**) {
  return 0;
}

Status execute_on(sqlite3* db, const char* sql, const std::string& doing) {
  const int code = sqlite3_exec(db, sql, no_rows, nullptr, nullptr);
  if (code == SQLITE_OK) return Done{};
  return error_of(db, code, doing);
}

Result<std::int64_t> integer_of(sqlite3* db, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(db, sql, -1, &statement, nullptr);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  const std::int64_t value = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  if (code != SQLITE_ROW) return error_of(db, code, "read");
  return value;
}

// "ok", or what is wrong first. Reads every page; the databases of Troika are some MiB.
Status check_sound(sqlite3* db, const std::string& path) {
  const auto unsound = [&](const std::string& reason) {
    return Error{"use the database", path,
                 reason + "; it is left as it is: move it aside to start with an empty one"};
  };
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, nullptr);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  std::string answer;
  if (code == SQLITE_ROW) answer = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
  sqlite3_finalize(statement);
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) return unsound(sqlite3_errmsg(db));
  if (code != SQLITE_ROW) return error_of(db, code, "check");
  if (answer != "ok") return unsound(answer);
  return Done{};
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_), statement_(std::exchange(other.statement_, nullptr)) {}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

Statement& Statement::bind(int index, std::int64_t value) {
  TROIKA_INVARIANT(sqlite3_bind_int64(statement_, index, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(int index, double value) {
  TROIKA_INVARIANT(sqlite3_bind_double(statement_, index, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(int index, std::string_view value) {
  // A null pointer would bind NULL in place of an empty text.
  const char* const data = value.data() != nullptr ? value.data() : "";
  TROIKA_INVARIANT(
      sqlite3_bind_text64(statement_, index, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind_null(int index) {
  TROIKA_INVARIANT(sqlite3_bind_null(statement_, index) == SQLITE_OK);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  // The error's text goes with the reset.
  const Result<bool> result =
      code == SQLITE_DONE ? Result<bool>{false} : Result<bool>{error_of(db_, code, "write to or read from")};
  sqlite3_reset(statement_);
  return result;
}

Status Statement::run() {
  while (true) {
    TROIKA_TRY(row, step());
    if (!row) return Done{};
  }
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string Statement::text(int column) const {
  const auto* const data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (data == nullptr) return {};
  return std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

Result<Database> Database::open(const std::string& path, Mode mode) {
  // The checks below read only. An ordinary file of zero bytes is a new database; anything else must be sound
  // before a byte of it is changed.
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) {
    if (!S_ISREG(facts.st_mode)) return Error{"use the database", path, "not a regular file"};
  } else if (errno != ENOENT || mode == Mode::ReadOnly) {
    return system_error("open the database", path, errno);
  }
  const int flags =
      mode == Mode::ReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_EXRESCODE, nullptr);
  Database database{raw};
  if (raw == nullptr) return Error{"open the database", path, "out of memory"};
  if (code != SQLITE_OK) return Error{"open the database", path, reason_of(raw, code)};
  sqlite3_busy_timeout(raw, kBusyMs);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // Closing an unsound database must not carry its WAL over into it.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  TROIKA_CHECK(check_sound(raw, path));
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  TROIKA_CHECK(execute_on(raw, "PRAGMA foreign_keys=ON", "set up"));
  if (mode == Mode::ReadOnly) return database;
  TROIKA_CHECK(execute_on(raw, "PRAGMA journal_mode=WAL", "set up"));
  TROIKA_CHECK(execute_on(raw, "PRAGMA synchronous=FULL", "set up"));
  return database;
}

Database::Database(Database&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}

Database& Database::operator=(Database&& other) noexcept {
  std::swap(db_, other.db_);
  return *this;
}

// _v2: statements that live longer keep the connection until the last of them goes.
Database::~Database() {
  sqlite3_close_v2(db_);
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return error_of(db_, code, "prepare a statement for");
  TROIKA_INVARIANT(statement != nullptr);
  return Statement{db_, statement};
}

Status Database::execute(std::string_view sql) {
  return execute_on(db_, std::string(sql).c_str(), "write to or read from");
}

Status Database::transaction(const std::function<Status()>& body) {
  // IMMEDIATE: the write lock is taken, or refused, before the body has done anything.
  TROIKA_CHECK(execute_on(db_, "BEGIN IMMEDIATE", "begin a change of"));
  Status status = body();
  if (status.ok()) status = execute_on(db_, "COMMIT", "commit to");
  if (status.ok()) return status;
  // A full disk may have rolled it back already; then there is nothing to undo.
  if (sqlite3_get_autocommit(db_) == 0) sqlite3_exec(db_, "ROLLBACK", no_rows, nullptr, nullptr);
  return status;
}

Status Database::migrate(const std::vector<std::string_view>& migrations) {
  TROIKA_TRY(version, integer_of(db_, "PRAGMA user_version"));
  const auto known = static_cast<std::int64_t>(migrations.size());
  if (version > known || version < 0)
    return Error{"use the database", path_of(db_),
                 "its version is " + std::to_string(version) + ", and this program knows versions to " +
                     std::to_string(known) + "; it was written by a newer one"};
  for (std::int64_t step = version; step < known; ++step) {
    const Status done = transaction([&]() -> Status {
      TROIKA_CHECK(execute(migrations[static_cast<std::size_t>(step)]));
      return execute("PRAGMA user_version=" + std::to_string(step + 1));
    });
    if (!done.ok()) return done;
  }
  return check_schema(migrations);
}

// Somebody with sqlite3 in hand may have dropped a table: told at the start, not in the middle of a failure.
Status Database::check_schema(const std::vector<std::string_view>& migrations) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database fresh{raw};
  if (code != SQLITE_OK) return Error{"check the tables of", path_of(db_), "out of memory"};
  for (const std::string_view migration : migrations)
    TROIKA_CHECK(fresh.execute(migration));
  TROIKA_TRY(wanted, fresh.prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"));
  while (true) {
    TROIKA_TRY(more, wanted.step());
    if (!more) return Done{};
    TROIKA_TRY(found, prepare("SELECT sql FROM sqlite_schema WHERE type = ?1 AND name = ?2"));
    found.bind(1, wanted.text(0)).bind(2, wanted.text(1));
    TROIKA_TRY(there, found.step());
    if (!there || found.text(0) != wanted.text(2))
      return Error{"use the database", path_of(db_),
                   "its " + wanted.text(0) + " " + wanted.text(1) +
                       (there ? " is not as this program made it" : " is missing") +
                       "; it is left as it is: move it aside to start with an empty one"};
  }
}

std::int64_t Database::last_insert_id() const {
  return sqlite3_last_insert_rowid(db_);
}

}  // namespace troika::platform
