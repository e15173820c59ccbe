// A thin edge over SQLite: one connection, prepared statements, errors as values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace troika::platform {

class Statement {
 public:
  Statement(Statement&&) noexcept;
  ~Statement();
  // Parameters from 1. Text and blobs are copied.
  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, std::string_view value);
  Statement& bind_null(int index);
  // True: a row is there. False: done. The statement is reset when done or on error.
  Result<bool> step();
  Status run();  // to the end, rows ignored
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  friend class Database;
  Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  sqlite3* db_;
  sqlite3_stmt* statement_;
};

class Database {
 public:
  enum class Mode { ReadWrite, ReadOnly };
  // WAL, synchronous=FULL, foreign keys, a busy time limit. A file that is not a sound database is refused
  // with its path, and left as it is.
  static Result<Database> open(const std::string& path, Mode mode);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  Result<Statement> prepare(std::string_view sql);
  Status execute(std::string_view sql);  // several statements without parameters
  // All or nothing: commits if `body` succeeds.
  Status transaction(const std::function<Status()>& body);
  // Brings user_version from what it is to migrations.size(), one transaction a step. A newer version is
  // refused, and so is a database in which a table or index is not there or not as the migrations made it.
  Status migrate(const std::vector<std::string_view>& migrations);
  std::int64_t last_insert_id() const;

 private:
  Status check_schema(const std::vector<std::string_view>& migrations);
  explicit Database(sqlite3* db) : db_(db) {}
  sqlite3* db_;
};

}  // namespace troika::platform
