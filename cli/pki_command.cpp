#include "cli/pki_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cli/output.hpp"
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

struct Options {
  std::string directory = "/etc/troika/pki";
  std::string cluster;
  std::string role;
  std::string name;
  int days = 0;
};

Duration days(int count) {
  return std::chrono::hours{24} * count;
}

int init(const Options& options) {
  const Status made = platform::make_authority(options.directory, options.cluster, days(options.days));
  if (!made.ok()) return complain(made.error(), kUsage);
  print("The authority of cluster " + options.cluster + " is " + shown(options.directory) +
        "/ca.crt, for every machine of the cluster.\nKeep " + shown(options.directory) +
        "/ca.key here and to yourself: whoever has it can join the cluster in any role.\n" +
        "Next: troika pki issue --role leader --name leader\n");
  return kGood;
}

int issue(const Options& options) {
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

Cell validity(const platform::CertificateFacts& facts) {
  const WallTime now = platform::wall_now();
  if (!facts.problem.empty()) return {shown(facts.problem), Tone::Bad};
  if (now > facts.valid_until) return {"expired", Tone::Bad};
  if (now < facts.valid_from) return {"not yet valid", Tone::Bad};
  const auto left = std::chrono::floor<std::chrono::days>(facts.valid_until - now);
  return {std::to_string(left.count()) + " days left", left < kSoon ? Tone::Doubtful : Tone::Good};
}

int list(const Options& options) {
  const auto certificates = platform::list_certificates(options.directory);
  if (!certificates.ok()) return complain(certificates.error(), kUsage);
  Table table({"FILE", "FOR", "UNTIL", "STATE"});
  bool good = true;
  for (const platform::CertificateFacts& facts : *certificates) {
    const Cell state = validity(facts);
    good = good && state.tone != Tone::Bad;
    table.row({{shown(facts.path)},
               {facts.subject.empty() ? "-" : shown(facts.subject)},
               {facts.problem.empty() ? rfc3339(facts.valid_until) : "-"},
               state});
  }
  if (table.empty())
    print("No certificates in " + shown(options.directory) + "\n");
  else
    print(table.text(style_of(STDOUT_FILENO)));
  return good ? kGood : kWrong;
}

void add_days(CLI::App* command, const std::shared_ptr<Options>& options, int usual) {
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
  const auto command = [&](const char* name, const char* description, int (*run)(const Options&)) {
    auto options = std::make_shared<Options>();
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
  command("list", "The certificates of the folder and how long they are valid", list);
}

}  // namespace troika::cli
