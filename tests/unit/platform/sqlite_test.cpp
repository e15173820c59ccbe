#include "platform/sqlite.hpp"

#include <sys/mount.h>

#include <filesystem>
#include <random>

#include "tests/unit/platform/folder.hpp"

namespace troika::platform {
namespace {

using Mode = Database::Mode;

const std::vector<std::string_view> kMigrations{
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, score REAL, note TEXT) STRICT;",
    "CREATE TABLE u (t INTEGER NOT NULL REFERENCES t(id)) STRICT; CREATE INDEX u_t ON u(t);",
};

Database opened(const std::string& path) {
  auto database = Database::open(path, Mode::ReadWrite);
  EXPECT_TRUE(database.ok()) << database.error().message();
  return *std::move(database);
}

std::int64_t count(Database& database, std::string_view sql) {
  auto statement = database.prepare(sql);
  EXPECT_TRUE(statement.ok()) << statement.error().message();
  const auto row = statement->step();
  EXPECT_TRUE(row.ok() && *row);
  return statement->integer(0);
}

void fill(Database& database, int rows) {
  ASSERT_TRUE(database.migrate(kMigrations).ok());
  const Status done = database.transaction([&]() -> Status {
    TROIKA_TRY(insert, database.prepare("INSERT INTO t(name, score, note) VALUES (?, ?, ?)"));
    for (int i = 0; i < rows; ++i)
      TROIKA_CHECK(insert.bind(1, "name " + std::to_string(i)).bind(2, 0.5 * i).bind_null(3).run());
    return Done{};
  });
  ASSERT_TRUE(done.ok()) << done.error().message();
}

TEST(Sqlite, ValuesRoundTrip) {
  const Folder folder;
  Database database = opened(folder / "a.db");
  fill(database, 3);
  auto insert = database.prepare("INSERT INTO t(id, name, score, note) VALUES (?, ?, ?, ?)");
  ASSERT_TRUE(insert.ok());
  const std::string odd("a\0b\xff'\"", 6);
  ASSERT_TRUE(
      insert->bind(1, std::int64_t{-7}).bind(2, odd).bind(3, 1.25).bind(4, std::string_view{}).run().ok());
  EXPECT_EQ(database.last_insert_id(), -7);
  auto select = database.prepare("SELECT id, name, score, note, note IS NULL FROM t WHERE id = ?");
  ASSERT_TRUE(select.ok());
  auto row = select->bind(1, std::int64_t{-7}).step();
  ASSERT_TRUE(row.ok() && *row);
  EXPECT_EQ(select->integer(0), -7);
  EXPECT_EQ(select->text(1), odd);
  EXPECT_EQ(select->real(2), 1.25);
  EXPECT_EQ(select->text(3), "");
  EXPECT_EQ(select->integer(4), 0);  // empty, not NULL
  row = select->step();
  ASSERT_TRUE(row.ok());
  EXPECT_FALSE(*row);
  row = select->bind(1, std::int64_t{1}).step();  // reset when done: usable again
  ASSERT_TRUE(row.ok() && *row);
  EXPECT_EQ(select->text(1), "name 0");
}

TEST(Sqlite, SettingsHold) {
  const Folder folder;
  Database database = opened(folder / "a.db");
  EXPECT_EQ(count(database, "PRAGMA synchronous"), 2);  // FULL
  EXPECT_EQ(count(database, "PRAGMA foreign_keys"), 1);
  {
    auto mode = database.prepare("PRAGMA journal_mode");
    ASSERT_TRUE(mode.ok() && mode->step().ok());
    EXPECT_EQ(mode->text(0), "wal");
  }
  ASSERT_TRUE(database.migrate(kMigrations).ok());
  const Status orphan = database.execute("INSERT INTO u VALUES (99)");
  ASSERT_FALSE(orphan.ok());
  EXPECT_EQ(orphan.error().message(),
            "cannot write to or read from " + (folder / "a.db") + ": FOREIGN KEY constraint failed");
}

TEST(Sqlite, ATransactionIsAllOrNothing) {
  const Folder folder;
  Database database = opened(folder / "a.db");
  fill(database, 3);
  const Status failed = database.transaction([&]() -> Status {
    TROIKA_CHECK(database.execute("DELETE FROM t"));
    return Error{"do", "it", "not today"};
  });
  EXPECT_EQ(failed.error().reason, "not today");
  EXPECT_EQ(count(database, "SELECT count(*) FROM t"), 3);
  EXPECT_TRUE(database.transaction([&] { return database.execute("DELETE FROM t WHERE id = 1"); }).ok());
  EXPECT_EQ(count(database, "SELECT count(*) FROM t"), 2);
}

TEST(Sqlite, MigrationsGoOnFromWhereTheyAre) {
  const Folder folder;
  {
    Database database = opened(folder / "a.db");
    ASSERT_TRUE(database.migrate({kMigrations[0]}).ok());
    ASSERT_TRUE(database.execute("INSERT INTO t(name) VALUES ('kept')").ok());
  }
  Database database = opened(folder / "a.db");
  ASSERT_TRUE(database.migrate(kMigrations).ok());
  ASSERT_TRUE(database.migrate(kMigrations).ok());
  EXPECT_EQ(count(database, "PRAGMA user_version"), 2);
  EXPECT_EQ(count(database, "SELECT count(*) FROM t"), 1);
}

TEST(Sqlite, AFailedMigrationLeavesTheVersionBefore) {
  const Folder folder;
  Database database = opened(folder / "a.db");
  const Status failed =
      database.migrate({kMigrations[0], "CREATE TABLE u (x INTEGER) STRICT; SELECT no_such_column;"});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(count(database, "PRAGMA user_version"), 1);
  EXPECT_EQ(count(database, "SELECT count(*) FROM sqlite_schema WHERE name = 'u'"), 0);
}

TEST(Sqlite, ANewerVersionIsRefused) {
  const Folder folder;
  Database database = opened(folder / "a.db");
  ASSERT_TRUE(database.execute("PRAGMA user_version=9").ok());
  const Status refused = database.migrate(kMigrations);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().reason.find("its version is 9, and this program knows versions to 2"),
            std::string::npos);
}

TEST(Sqlite, MissingOrForeignTablesAreToldAtTheStart) {
  const Folder folder;
  for (const std::string change :
       {"DROP TABLE t", "DROP TABLE t; CREATE TABLE t (x)", "ALTER TABLE t ADD COLUMN y TEXT"}) {
    std::filesystem::remove(folder / "a.db");
    Database database = opened(folder / "a.db");
    ASSERT_TRUE(database.migrate(kMigrations).ok());
    ASSERT_TRUE(database.execute(change).ok()) << change;
    const Status refused = database.migrate(kMigrations);
    ASSERT_FALSE(refused.ok()) << change;
    EXPECT_NE(refused.error().reason.find("its table t is"), std::string::npos) << refused.error().message();
  }
}

TEST(Sqlite, ErrorsOfSqlAreValues) {
  const Folder folder;
  Database database = opened(folder / "a.db");
  EXPECT_FALSE(database.prepare("SELECT FROM").ok());
  EXPECT_FALSE(database.execute("no sql").ok());
}

TEST(Sqlite, WhatIsNoDatabaseIsRefusedAndLeftAsItIs) {
  const Folder folder;
  const std::string path = folder / "a.db";
  const std::string text(5000, 'x');
  ASSERT_TRUE(write_file_durably(path, text).ok());
  const auto refused = Database::open(path, Mode::ReadWrite);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(),
            "cannot use the database " + path +
                ": file is not a database; it is left as it is: move it aside to start with an empty one");
  EXPECT_EQ(content_of(path), text);
  EXPECT_FALSE(Database::open(folder.path(), Mode::ReadWrite).ok());
  EXPECT_FALSE(Database::open(folder / "none.db", Mode::ReadOnly).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "none.db"));
  EXPECT_FALSE(Database::open(folder / "none/a.db", Mode::ReadWrite).ok());
}

// Whatever byte is damaged: either the open refuses the file with its path, or the rows can be read or
// refused; it is never changed by being opened.
TEST(Sqlite, ADamagedFileIsNamedAndNeverChanged) {
  const Folder folder;
  const std::string path = folder / "a.db";
  {
    Database database = opened(path);
    fill(database, 500);
  }
  const std::string sound = content_of(path);
  ASSERT_GT(sound.size(), 8192u);
  std::mt19937 random(3);
  int refusals = 0;
  for (int round = 0; round < 60; ++round) {
    std::string damaged = sound;
    const std::size_t at = round < 20 ? static_cast<std::size_t>(round) * 5 : random() % damaged.size();
    for (std::size_t i = at; i < std::min(at + 200, damaged.size()); ++i)
      damaged[i] = static_cast<char>(random());
    std::filesystem::remove(path + "-wal");
    std::filesystem::remove(path + "-shm");
    ASSERT_TRUE(write_file_durably(path, damaged).ok());
    auto database = Database::open(path, Mode::ReadWrite);
    if (database.ok()) continue;
    ++refusals;
    EXPECT_NE(database.error().message().find(path), std::string::npos) << database.error().message();
    EXPECT_EQ(content_of(path), damaged);
  }
  EXPECT_GT(refusals, 20);
  // Cut short, as after a full disk.
  ASSERT_TRUE(write_file_durably(path, sound.substr(0, sound.size() / 2)).ok());
  EXPECT_FALSE(Database::open(path, Mode::ReadWrite).ok());
}

TEST(Sqlite, AFullDiskIsNamedAndLosesNothing) {
  const Folder folder;
  const std::string disk = folder / "disk";
  ASSERT_TRUE(make_directories(disk).ok());
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=512k") != 0) GTEST_SKIP() << "needs a tmpfs of its own";
  {
    Database database = opened(disk + "/a.db");
    ASSERT_TRUE(database.migrate(kMigrations).ok());
    std::int64_t kept = 0;
    std::string reason;
    while (reason.empty() && kept < 10'000) {
      const Status done = database.transaction([&]() -> Status {
        TROIKA_TRY(insert, database.prepare("INSERT INTO t(name) VALUES (?)"));
        return insert.bind(1, std::string(4000, 'x')).run();
      });
      if (done.ok())
        ++kept;
      else
        reason = done.error().message();
    }
    EXPECT_NE(reason.find(disk + "/a.db: "), std::string::npos) << reason;
    EXPECT_TRUE(reason.find("no space left") != std::string::npos ||
                reason.find("No space left") != std::string::npos)
        << reason;
    EXPECT_GT(kept, 10);
    EXPECT_EQ(count(database, "SELECT count(*) FROM t"), kept);
  }
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST(Sqlite, ASecondWriterWaitsAndReadersReadOn) {
  const Folder folder;
  Database writer = opened(folder / "a.db");
  fill(writer, 3);
  auto reader = Database::open(folder / "a.db", Mode::ReadOnly);
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  EXPECT_TRUE(writer
                  .transaction([&]() -> Status {
                    TROIKA_CHECK(writer.execute("DELETE FROM t"));
                    EXPECT_EQ(count(*reader, "SELECT count(*) FROM t"), 3);
                    return Done{};
                  })
                  .ok());
  EXPECT_EQ(count(*reader, "SELECT count(*) FROM t"), 0);
  EXPECT_FALSE(reader->execute("INSERT INTO t(name) VALUES ('x')").ok());
}

}  // namespace
}  // namespace troika::platform
