#include "daemon/incidents/incidents.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "protocol/codec.hpp"
#include "vocabulary/time.hpp"

namespace troika::daemon {
namespace {

std::int64_t millis(WallTime at) {
  return at.time_since_epoch().count();
}
std::string date(std::int64_t value) {
  return rfc3339(WallTime{std::chrono::milliseconds{value}});
}

std::string text_of(const protocol::Json& json) {
  return json.dump(-1, ' ', false, protocol::Json::error_handler_t::replace);
}

Result<std::optional<std::int64_t>> first_integer(platform::Statement& query) {
  TROIKA_TRY(row, query.step());
  if (!row) return std::optional<std::int64_t>{};
  return std::optional{query.integer(0)};
}

}  // namespace

Result<std::optional<std::int64_t>> Incidents::open_id(const std::string& subject) {
  TROIKA_TRY(query,
             store_.database().prepare("SELECT id FROM incidents WHERE subject = ?1 AND closed IS NULL "
                                       "ORDER BY id DESC LIMIT 1"));
  query.bind(1, subject);
  return first_integer(query);
}

Result<bool> Incidents::is_open(const std::string& subject) {
  TROIKA_TRY(id, open_id(subject));
  return id.has_value();
}

Result<std::int64_t> Incidents::insert(const std::string& subject, const std::string& title, WallTime at) {
  TROIKA_TRY(statement,
             store_.database().prepare("INSERT INTO incidents (opened, subject, title) VALUES (?1, ?2, ?3)"));
  TROIKA_CHECK(statement.bind(1, millis(at)).bind(2, subject).bind(3, title).run());
  return store_.database().last_insert_id();
}

Status Incidents::open(const std::string& subject, const std::string& title,
                       const std::vector<Finding>& findings, WallTime at) {
  return store_.database().transaction([&]() -> Status {
    TROIKA_TRY(known, open_id(subject));
    if (known) return add_findings(*known, findings, at);
    TROIKA_TRY(id, insert(subject, title, at));
    TROIKA_CHECK(add_findings(id, findings, at));
    return forget_old();
  });
}

Result<bool> Incidents::note(const std::string& subject, const std::string& action,
                             const std::vector<Finding>& findings, WallTime at, const std::string& title) {
  bool noted = false;
  auto written = store_.database().transaction([&]() -> Status {
    TROIKA_TRY(id, open_id(subject));
    if (!id) return Done{};
    noted = true;
    if (!title.empty()) TROIKA_CHECK(retitle(*id, title));
    TROIKA_CHECK(add_findings(*id, findings, at));
    return action.empty() ? Status{Done{}} : add_action(*id, action, at);
  });
  if (!written.ok()) return written.error();
  return noted;
}

Status Incidents::close(const std::string& subject, const std::string& action, WallTime at) {
  return store_.database().transaction([&]() -> Status {
    TROIKA_TRY(id, open_id(subject));
    if (!id) return Done{};
    if (!action.empty()) TROIKA_CHECK(add_action(*id, action, at));
    TROIKA_TRY(statement, store_.database().prepare("UPDATE incidents SET closed = ?2 WHERE id = ?1"));
    return statement.bind(1, *id).bind(2, millis(at)).run();
  });
}

Status Incidents::retitle(std::int64_t incident, const std::string& title) {
  TROIKA_TRY(statement, store_.database().prepare("UPDATE incidents SET title = ?2 WHERE id = ?1"));
  return statement.bind(1, incident).bind(2, title).run();
}

Status Incidents::add_findings(std::int64_t incident, const std::vector<Finding>& findings, WallTime at) {
  for (const auto& finding : findings) {
    const std::string text = text_of(protocol::to_json(finding));
    // The same finding again tells nothing new.
    TROIKA_TRY(statement,
               store_.database().prepare(
                   "INSERT INTO incident_findings (incident, at, finding) SELECT ?1, ?2, ?3 WHERE "
                   "(SELECT count(*) FROM incident_findings WHERE incident = ?1) < ?4 AND NOT EXISTS "
                   "(SELECT 1 FROM incident_findings WHERE incident = ?1 AND finding = ?3)"));
    TROIKA_CHECK(statement.bind(1, incident).bind(2, millis(at)).bind(3, text).bind(4, kFindingsEach).run());
  }
  return Done{};
}

Status Incidents::add_action(std::int64_t incident, const std::string& action, WallTime at) {
  auto& database = store_.database();
  TROIKA_TRY(count, database.prepare("SELECT count(*) FROM incident_actions WHERE incident = ?1"));
  count.bind(1, incident);
  TROIKA_TRY(listed, first_integer(count));
  if (listed.value_or(0) >= kActionsEach) {
    // The newest matters most to whoever looks: it takes the place of the last one kept.
    TROIKA_TRY(replace, database.prepare("UPDATE incident_actions SET at = ?2, action = ?3 WHERE id = "
                                         "(SELECT max(id) FROM incident_actions WHERE incident = ?1)"));
    return replace.bind(1, incident)
        .bind(2, millis(at))
        .bind(3, action + " (some before it were not kept)")
        .run();
  }
  TROIKA_TRY(add,
             database.prepare("INSERT INTO incident_actions (incident, at, action) VALUES (?1, ?2, ?3)"));
  return add.bind(1, incident).bind(2, millis(at)).bind(3, action).run();
}

Status Incidents::forget_old() {
  TROIKA_TRY(statement, store_.database().prepare(
                            "DELETE FROM incidents WHERE closed IS NOT NULL AND id NOT IN "
                            "(SELECT id FROM incidents WHERE closed IS NOT NULL ORDER BY id DESC LIMIT ?1)"));
  return statement.bind(1, kKeptIncidents).run();
}

Status Incidents::fill(protocol::Incident& incident) {
  TROIKA_TRY(findings, store_.database().prepare(
                           "SELECT finding FROM incident_findings WHERE incident = ?1 ORDER BY id"));
  findings.bind(1, incident.id);
  while (true) {
    TROIKA_TRY(row, findings.step());
    if (!row) break;
    Finding finding;
    try {
      protocol::detail::read(protocol::Json::parse(findings.text(0), nullptr, false), finding);
    } catch (const protocol::detail::FieldError&) {
      continue;  // written by a version that said it differently; it is only shown
    }
    incident.findings.push_back(std::move(finding));
  }
  TROIKA_TRY(actions, store_.database().prepare(
                          "SELECT at, action FROM incident_actions WHERE incident = ?1 ORDER BY id"));
  actions.bind(1, incident.id);
  while (true) {
    TROIKA_TRY(row, actions.step());
    if (!row) return Done{};
    incident.actions.push_back(date(actions.integer(0)) + " " + actions.text(1));
  }
}

Result<std::vector<protocol::Incident>> Incidents::list(const protocol::IncidentsRequest& request) {
  std::int64_t since = 0;
  if (!request.since.empty()) {
    TROIKA_TRY(parsed, parse_rfc3339(request.since));
    since = millis(parsed);
  }
  TROIKA_TRY(query,
             store_.database().prepare(
                 "SELECT id, opened, closed IS NULL, ifnull(closed, 0), subject, title FROM incidents WHERE "
                 "(closed IS NULL OR (closed >= ?1 AND ?2 = 0)) ORDER BY id DESC LIMIT ?3"));
  query.bind(1, since).bind(2, std::int64_t{request.open_only});
  query.bind(3, std::int64_t{std::min(request.limit, kMostListed)});
  std::vector<protocol::Incident> found;
  while (true) {
    TROIKA_TRY(row, query.step());
    if (!row) break;
    protocol::Incident incident;
    incident.id = query.integer(0);
    incident.opened = date(query.integer(1));
    if (query.integer(2) == 0) incident.closed = date(query.integer(3));
    incident.subject = query.text(4);
    incident.title = query.text(5);
    found.push_back(std::move(incident));
  }
  std::size_t bytes = 0;
  std::size_t kept = 0;
  for (auto& incident : found) {
    TROIKA_CHECK(fill(incident));
    bytes += text_of(protocol::to_json(incident)).size();
    if (bytes > kMostListedBytes) break;
    ++kept;
  }
  found.resize(kept);
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace troika::daemon
