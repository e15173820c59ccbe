#include "cli/pki_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "cli/report.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "platform/clock.hpp"
#include "platform/pki.hpp"
#include "vocabulary/time.hpp"

namespace troika::cli {
namespace {

constexpr int kAuthorityDays = 3650;
constexpr int kCertificateDays = 825;
// `list` warns for so long before a certificate ends.
constexpr std::chrono::days kSoon{30};

struct PkiOptions {
  std::string directory = "/etc/troika/pki";
  std::string cluster;
  std::string role;
  std::string name;
  int days = 0;
  bool json = false;
};

Duration days(int count) {
  return std::chrono::hours{24} * count;
}

int init(const PkiOptions& options) {
  const Status made = platform::make_authority(options.directory, options.cluster, days(options.days));
  if (!made.ok()) return complain(made.error(), kUsage);
  print("The authority of cluster " + options.cluster + " is " + shown(options.directory) +
        "/ca.crt, for every machine of the cluster.\nKeep " + shown(options.directory) +
        "/ca.key here and to yourself: whoever has it can join the cluster in any role.\n" +
        "Next: troika pki issue --role leader --name leader --dir " + shown(options.directory) + "\n");
  return kGood;
}

int issue(const PkiOptions& options) {
  const auto cluster = platform::authority_cluster(options.directory);
  if (!cluster.ok()) return complain(cluster.error(), kUsage);
  const auto role = platform::parse_role(options.role);
  if (!role.ok()) return complain(role.error(), kUsage);
  const platform::Identity identity{*cluster, *role, options.name};
  const auto files = platform::issue(options.directory, identity, days(options.days));
  if (!files.ok()) return complain(files.error(), kUsage);
  print(platform::uri(identity) + "\n  certificate " + shown(files->certificate) + "\n  key         " +
        shown(files->key) + "\n  valid for   " + std::to_string(options.days) + " days\n");
  return kGood;
}

// What may be said of a certificate now.
struct Validity {
  std::string state;  // "good", "ends soon", "expired", "not yet valid", or what is wrong with it
  Tone tone = Tone::Good;
  std::int64_t days_left = 0;
};

Validity validity(const platform::CertificateFacts& facts) {
  const WallTime now = platform::wall_now();
  const auto left = std::chrono::floor<std::chrono::days>(facts.valid_until - now);
  if (!facts.problem.empty()) return {facts.problem, Tone::Bad, left.count()};
  if (now > facts.valid_until) return {"expired", Tone::Bad, left.count()};
  if (now < facts.valid_from) return {"not yet valid", Tone::Bad, left.count()};
  if (left < kSoon) return {"ends soon", Tone::Doubtful, left.count()};
  return {"good", Tone::Good, left.count()};
}

// One that cannot be read has no times.
std::string time_or(const platform::CertificateFacts& facts, WallTime time, const char* otherwise) {
  return facts.valid_until == WallTime{} ? otherwise : rfc3339(time);
}

std::string for_people(const PkiOptions& options,
                       const std::vector<platform::CertificateFacts>& certificates) {
  Table table({"FILE", "FOR", "UNTIL", "STATE"});
  for (const platform::CertificateFacts& facts : certificates) {
    const Validity now = validity(facts);
    const std::string state =
        now.tone == Tone::Bad ? shown(now.state) : std::to_string(now.days_left) + " days left";
    table.row({{shown(facts.path)},
               {facts.subject.empty() ? "-" : shown(facts.subject)},
               {time_or(facts, facts.valid_until, "-")},
               {state, now.tone}});
  }
  if (table.empty()) return "No certificates in " + shown(options.directory) + "\n";
  return table.text(style_of(STDOUT_FILENO));
}

nlohmann::json for_programs(const PkiOptions& options,
                            const std::vector<platform::CertificateFacts>& certificates) {
  std::vector<Finding> findings;
  auto list = nlohmann::json::array();
  for (const platform::CertificateFacts& facts : certificates) {
    const Validity now = validity(facts);
    list.push_back({{"path", facts.path},
                    {"subject", facts.subject},
                    {"valid_from", time_or(facts, facts.valid_from, "")},
                    {"valid_until", time_or(facts, facts.valid_until, "")},
                    {"days_left", now.days_left},
                    {"state", now.state}});
    if (now.tone == Tone::Good) continue;
    Finding one = finding(Code::CERT_INVALID, "", facts.path, facts.path + ": " + now.state,
                          "issue it anew: troika pki issue; its old files must be moved away first");
    if (now.tone == Tone::Doubtful) one.severity = Severity::Warning;
    findings.push_back(std::move(one));
  }
  return report(findings, {{"directory", options.directory}, {"certificates", std::move(list)}});
}

int list(const PkiOptions& options) {
  const auto certificates = platform::list_certificates(options.directory);
  if (!certificates.ok()) return complain(certificates.error(), kUsage, options.json);
  print(options.json ? document(for_programs(options, *certificates)) : for_people(options, *certificates));
  const bool good = std::none_of(certificates->begin(), certificates->end(),
                                 [](const auto& facts) { return validity(facts).tone == Tone::Bad; });
  return good ? kGood : kWrong;
}

void add_days(CLI::App* command, const std::shared_ptr<PkiOptions>& options, int usual) {
  constexpr int kMostDays = 36500;
  options->days = usual;
  command->add_option("--days", options->days, "How long it is valid")
      ->check(CLI::Range(1, kMostDays))
      ->capture_default_str();
}

}  // namespace

void add_pki(CLI::App& app, const Global&, int& exit_status) {
  CLI::App* const group = app.add_subcommand("pki", "Certificates for leader, agents and operators");
  group->require_subcommand(1);
  const auto command = [&](const char* name, const char* description, int (*run)(const PkiOptions&)) {
    auto options = std::make_shared<PkiOptions>();
    CLI::App* const made = group->add_subcommand(name, description);
    made->add_option("--dir", options->directory, "Folder of the certificates")->capture_default_str();
    made->callback([=, &exit_status] { exit_status = run(*options); });
    return std::pair{made, options};
  };
  const auto [init_command, init_options] = command("init", "Make the cluster's authority", init);
  init_command->add_option("--cluster", init_options->cluster, "Name of the cluster")->required();
  add_days(init_command, init_options, kAuthorityDays);
  const auto [issue_command, issue_options] = command("issue", "Make a certificate and its key", issue);
  issue_command->add_option("--role", issue_options->role, "leader, agent or operator")
      ->required()
      ->check(CLI::IsMember({"leader", "agent", "operator"}));
  issue_command->add_option("--name", issue_options->name, "Who it is for; an agent's is its node's name")
      ->required();
  add_days(issue_command, issue_options, kCertificateDays);
  const auto [list_command, list_options] = command(
      "list", "The certificates of the folder, whether its authority made them, and how long they are valid",
      list);
  list_command->add_flag("--json", list_options->json, "One JSON document: the report and every certificate");
}

}  // namespace troika::cli
