#include "agent/model/record.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "protocol/codec.hpp"

namespace troika::model {
namespace {

// A new number when a rule on headers, index or configuration changes: what was judged by the old ones counts
// no longer.
constexpr std::int64_t kRules = 3;

const std::vector<std::string_view>& migrations() {
  static const std::vector<std::string_view> all{
      // Numbers of devices and inodes are unsigned 64-bit ones, kept as SQLite's signed.
      R"sql(
CREATE TABLE file (
  device INTEGER NOT NULL, inode INTEGER NOT NULL, bytes INTEGER NOT NULL,
  modified_ns INTEGER NOT NULL, changed_ns INTEGER NOT NULL,
  file_system INTEGER NOT NULL, file_system_type INTEGER NOT NULL,
  proven_ns INTEGER NOT NULL, since_boot_ns INTEGER NOT NULL, boot_id TEXT NOT NULL,
  sha256 TEXT NOT NULL, git_sha1 TEXT NOT NULL,
  PRIMARY KEY (device, inode)
) STRICT;
CREATE INDEX file_by_age ON file (proven_ns);
CREATE TABLE manifest (
  digest TEXT NOT NULL PRIMARY KEY, rules INTEGER NOT NULL, contents TEXT NOT NULL
) STRICT;
)sql"};
  return all;
}

std::int64_t kept(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}
std::uint64_t number(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

// Whoever can write the record could have any bytes believed.
Status check_owner(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0)
    return errno == ENOENT ? Status{Done{}} : Status{system_error("open", path, errno)};
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
    return Error{"use the record of proofs", path,
                 "it belongs to user " + std::to_string(facts.st_uid) + ": remove it"};
  if ((facts.st_mode & S_IWOTH) != 0)
    return Error{"use the record of proofs", path, "anybody may write to it: remove it"};
  return Done{};
}

}  // namespace

Result<std::unique_ptr<ProofRecord>> ProofRecord::open(const std::string& path) {
  TROIKA_CHECK(platform::make_directories(path.substr(0, path.rfind('/')), 0755));
  TROIKA_CHECK(check_owner(path));
  TROIKA_TRY(database, platform::Database::open(path, platform::Database::Mode::ReadWrite));
  TROIKA_CHECK(database.migrate(migrations()));
  return std::unique_ptr<ProofRecord>(new ProofRecord(std::move(database)));
}

Status ProofRecord::health() {
  const std::lock_guard guard(mutex_);
  return health_;
}

std::optional<policies::Remembered> ProofRecord::find(const policies::FileStamp& stamp) {
  const std::lock_guard guard(mutex_);
  if (!health_.ok()) return std::nullopt;
  auto found = read(stamp);
  if (found.ok()) return *std::move(found);
  health_ = found.error();
  return std::nullopt;
}

void ProofRecord::put(const policies::Remembered& one) {
  const std::lock_guard guard(mutex_);
  if (health_.ok()) health_ = write(one);
}

std::optional<Contents> ProofRecord::contents_of(const std::string& manifest_digest) {
  const std::lock_guard guard(mutex_);
  if (!health_.ok()) return std::nullopt;
  auto found = read_contents(manifest_digest);
  if (found.ok()) return *std::move(found);
  health_ = found.error();
  return std::nullopt;
}

void ProofRecord::put_contents(const std::string& manifest_digest, const Contents& contents) {
  const std::lock_guard guard(mutex_);
  if (health_.ok()) health_ = write_contents(manifest_digest, contents);
}

Result<std::optional<policies::Remembered>> ProofRecord::read(const policies::FileStamp& stamp) {
  TROIKA_TRY(row, database_.prepare("SELECT bytes, modified_ns, changed_ns, file_system, file_system_type, "
                                    "proven_ns, since_boot_ns, boot_id, sha256, git_sha1 "
                                    "FROM file WHERE device = ?1 AND inode = ?2"));
  row.bind(1, kept(stamp.device)).bind(2, kept(stamp.inode));
  TROIKA_TRY(there, row.step());
  if (!there) return std::optional<policies::Remembered>{};
  policies::Remembered one;
  one.stamp = {stamp.device, stamp.inode, number(row.integer(0)), Duration{row.integer(1)},
               Duration{row.integer(2)}};
  one.file_system = {number(row.integer(3)), number(row.integer(4))};
  one.proven = {Duration{row.integer(5)}, Duration{row.integer(6)}, row.text(7)};
  one.sha256 = row.text(8);
  one.git_sha1 = row.text(9);
  return std::optional{std::move(one)};
}

Status ProofRecord::write(const policies::Remembered& one) {
  return database_.transaction([&]() -> Status {
    TROIKA_TRY(insert, database_.prepare("INSERT OR REPLACE INTO file VALUES "
                                         "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"));
    insert.bind(1, kept(one.stamp.device)).bind(2, kept(one.stamp.inode)).bind(3, kept(one.stamp.bytes));
    insert.bind(4, one.stamp.modified.count()).bind(5, one.stamp.changed.count());
    insert.bind(6, kept(one.file_system.id)).bind(7, kept(one.file_system.type));
    insert.bind(8, one.proven.wall.count()).bind(9, one.proven.boot.count()).bind(10, one.proven.boot_id);
    insert.bind(11, one.sha256).bind(12, one.git_sha1);
    TROIKA_CHECK(insert.run());
    TROIKA_TRY(trim, database_.prepare("DELETE FROM file WHERE rowid IN (SELECT rowid FROM file "
                                       "ORDER BY proven_ns DESC LIMIT -1 OFFSET ?1)"));
    return trim.bind(1, kKeptFiles).run();
  });
}

Result<std::optional<Contents>> ProofRecord::read_contents(const std::string& manifest_digest) {
  TROIKA_TRY(row, database_.prepare("SELECT contents FROM manifest WHERE digest = ?1 AND rules = ?2"));
  row.bind(1, manifest_digest).bind(2, kRules);
  TROIKA_TRY(there, row.step());
  if (!there) return std::optional<Contents>{};
  auto contents = protocol::from_json<Contents>(protocol::Json::parse(row.text(0), nullptr, false));
  if (!contents.ok()) return std::optional<Contents>{};  // of another version: judged anew
  return std::optional{*std::move(contents)};
}

Status ProofRecord::write_contents(const std::string& manifest_digest, const Contents& contents) {
  return database_.transaction([&]() -> Status {
    TROIKA_TRY(insert, database_.prepare("INSERT OR REPLACE INTO manifest VALUES (?1, ?2, ?3)"));
    insert.bind(1, manifest_digest).bind(2, kRules).bind(3, protocol::to_json(contents).dump());
    TROIKA_CHECK(insert.run());
    TROIKA_TRY(trim, database_.prepare("DELETE FROM manifest WHERE rowid IN (SELECT rowid FROM manifest "
                                       "ORDER BY rowid DESC LIMIT -1 OFFSET ?1)"));
    return trim.bind(1, kKeptManifests).run();
  });
}

}  // namespace troika::model
