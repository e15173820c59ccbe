#include "daemon/store/schema.hpp"

namespace troika::daemon {
namespace {

// Times are milliseconds since 1970 in UTC; findings are JSON as in every report.
constexpr std::string_view kFirst = R"sql(
CREATE TABLE meta (
  key TEXT PRIMARY KEY NOT NULL,
  value INTEGER NOT NULL
) STRICT;

CREATE TABLE replicas (
  name TEXT PRIMARY KEY NOT NULL,
  desired_running INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  proven INTEGER NOT NULL,
  breaker_open INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  released INTEGER NOT NULL,
  active INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  kv_capacity INTEGER NOT NULL
) STRICT;

CREATE TABLE epochs (
  replica TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  term INTEGER NOT NULL,
  started INTEGER NOT NULL,
  proven_at INTEGER,
  ended INTEGER,
  reason TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (replica, epoch)
) STRICT;

CREATE TABLE verifications (
  id INTEGER PRIMARY KEY,
  node TEXT NOT NULL,
  replica TEXT NOT NULL,
  at INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  done TEXT NOT NULL
) STRICT;
CREATE INDEX verifications_by_node ON verifications (node, replica, id);

CREATE TABLE stage_events (
  id INTEGER PRIMARY KEY,
  event TEXT NOT NULL UNIQUE,
  node TEXT NOT NULL,
  received INTEGER NOT NULL,
  stage_event TEXT NOT NULL
) STRICT;

CREATE TABLE incidents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  opened INTEGER NOT NULL,
  closed INTEGER,
  subject TEXT NOT NULL,
  title TEXT NOT NULL
) STRICT;
CREATE INDEX incidents_by_subject ON incidents (subject, id);

CREATE TABLE incident_findings (
  id INTEGER PRIMARY KEY,
  incident INTEGER NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  finding TEXT NOT NULL
) STRICT;
CREATE INDEX incident_findings_of ON incident_findings (incident);

CREATE TABLE incident_actions (
  id INTEGER PRIMARY KEY,
  incident INTEGER NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  action TEXT NOT NULL
) STRICT;
CREATE INDEX incident_actions_of ON incident_actions (incident);
)sql";

}  // namespace

const std::vector<std::string_view>& store_migrations() {
  static const std::vector<std::string_view> migrations{kFirst};
  return migrations;
}

}  // namespace troika::daemon
