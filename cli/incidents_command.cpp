#include "cli/incidents_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/client.hpp"
#include "cli/output.hpp"
#include "cli/render.hpp"
#include "cli/report.hpp"
#include "platform/clock.hpp"
#include "protocol/codec.hpp"
#include "vocabulary/time.hpp"

namespace troika::cli {
namespace {

constexpr std::uint32_t kMaxIncidents =
    1000;  // asked for at once; the reply stays below the limit of a message

struct IncidentsOptions {
  std::string since;
  bool open = false;
  bool json = false;
  std::int64_t id = 0;
};

// "2h" (that long ago) or RFC 3339.
Result<std::string> since_text(const std::string& text) {
  if (text.empty()) return text;
  if (const auto ago = parse_duration(text); ago.ok())
    return rfc3339(platform::wall_now() - std::chrono::duration_cast<std::chrono::milliseconds>(*ago));
  const auto time = parse_rfc3339(text);
  if (!time.ok())
    return Error{"read --since", text,
                 "a time such as 2026-11-30T20:27:32Z or how long ago, such as 2h, is expected"};
  return rfc3339(*time);
}

nlohmann::json own_fields(const std::vector<protocol::Incident>& incidents) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& one : incidents)
    list.push_back(protocol::to_json(one));
  return {{"incidents", std::move(list)}};
}

int list(const Global& global, const IncidentsOptions& options) {
  const auto since = since_text(options.since);
  if (!since.ok()) return complain(since.error(), kUsage, options.json);
  const auto answer = ask_incidents(global, {*since, options.open, kMaxIncidents});
  if (!answer.ok()) return complain(answer.error, answer.failure, options.json, answer.remedy);
  const auto& incidents = answer.reply->incidents;
  const auto findings = findings_of(incidents);
  print(options.json ? document(report(findings, own_fields(incidents)))
                     : render_incidents(incidents, style_of(STDOUT_FILENO)));
  return troika::exit_status(verdict_of(findings));
}

int show(const Global& global, const IncidentsOptions& options) {
  const auto answer = ask_incidents(global, {"", false, kMaxIncidents});
  if (!answer.ok()) return complain(answer.error, answer.failure, options.json, answer.remedy);
  const auto& all = answer.reply->incidents;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.id == options.id; });
  if (found == all.end())
    return complain(
        finding(Code::NOT_FOUND, "", std::to_string(options.id),
                "there is no incident " + std::to_string(options.id), "list them: troika incidents"),
        kWrong, options.json);
  const auto findings = findings_of({*found});
  print(options.json ? document(report(findings, own_fields({*found})))
                     : render_incident(*found, style_of(STDOUT_FILENO)));
  return troika::exit_status(verdict_of(findings));
}

}  // namespace

void add_incidents(CLI::App& app, const Global& global, int& exit_status) {
  auto options = std::make_shared<IncidentsOptions>();
  CLI::App* const command = app.add_subcommand(
      "incidents",
      "What happened to replicas and nodes, oldest first; exit status 1 while an incident is open");
  command->add_option("--since", options->since, "Only opened since then: RFC 3339, or how long ago (2h, 7d)")
      ->type_name("T");
  command->add_flag("--open", options->open, "Only those that are still open");
  command->add_flag("--json", options->json, "One JSON document");
  CLI::App* const one =
      command->add_subcommand("show", "One incident in full: findings, evidence, remedies, actions");
  one->add_option("ID", options->id, "Number of the incident")->required();
  one->add_flag("--json", options->json, "One JSON document");
  command->require_subcommand(0, 1);
  command->callback([=, &global, &exit_status] {
    exit_status = one->parsed() ? show(global, *options) : list(global, *options);
  });
}

}  // namespace troika::cli
