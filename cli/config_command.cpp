#include "cli/config_command.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "config/agent.hpp"
#include "config/cluster.hpp"
#include "config/kind.hpp"
#include "platform/files.hpp"
#include "vocabulary/finding.hpp"

namespace troika::cli {
namespace {

constexpr Bytes kMaxFile{256u << 10};  // as the daemons have it

struct ConfigOptions {
  std::string file;
  std::string kind;  // empty: guessed
  bool json = false;
};

struct Checked {
  std::string summary;  // of a good file
  std::vector<config::Problem> problems;
};

std::string counted(std::size_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

Checked check_cluster(const std::string& text, const std::string& path) {
  const auto loaded = config::parse_cluster(text, path);
  if (!loaded.config) return {"", loaded.problems};
  const config::ClusterConfig& cluster = *loaded.config;
  return {"cluster " + cluster.cluster + ", " + counted(cluster.nodes.size(), "node") + ", " +
              counted(cluster.replicas.size(), "replica") + ", engine " +
              std::string(config::name(cluster.engine.kind)),
          {}};
}

Checked check_agent(const std::string& text, const std::string& path) {
  const auto loaded = config::parse_agent(text, path);
  if (!loaded.config) return {"", loaded.problems};
  const config::AgentConfig& agent = *loaded.config;
  return {
      "node " + agent.node + " of cluster " + agent.cluster + ", " + counted(agent.engines.size(), "engine"),
      {}};
}

Checked check(config::FileKind kind, const std::string& text, const std::string& path) {
  switch (kind) {
    case config::FileKind::Cluster:
      return check_cluster(text, path);
    case config::FileKind::Agent:
      return check_agent(text, path);
  }
  broken_invariant("file kind", __FILE__, __LINE__);
}

config::Loaded<config::FileKind> kind_of(const ConfigOptions& options, const std::string& text) {
  for (const auto kind : {config::FileKind::Cluster, config::FileKind::Agent})
    if (options.kind == config::name(kind)) return {kind, {}};
  return config::tell_kind(text, options.file);
}

std::string for_people(const std::string& path, const Checked& checked) {
  if (checked.problems.empty()) return shown(path) + ": good: " + checked.summary + "\n";
  std::string text;
  for (const config::Problem& problem : checked.problems)
    text += shown(problem.message()) + "\n";
  return text + counted(checked.problems.size(), "problem") + "\n";
}

Code code_of(const config::Problem& problem) {
  const auto own = parse_code(problem.code);
  return own.ok() ? *own : Code::CONFIG_INVALID;
}

Finding finding_of(const config::Problem& problem) {
  const bool whole = problem.key.empty();
  return finding(code_of(problem), "", whole ? problem.file : problem.key, problem.message(),
                 "change " + (whole ? "" : problem.key + " in ") + problem.file,
                 {{"file", problem.file},
                  {"line", std::int64_t{problem.line}},
                  {"column", std::int64_t{problem.column}},
                  {"key", problem.key},
                  {"value", problem.value},
                  {"allowed", problem.expected}});
}

// Every problem is a finding, with its place as evidence; "problems" has the same as plain fields.
std::string for_programs(const std::optional<config::FileKind>& kind, const std::string& path,
                         const Checked& checked) {
  std::vector<Finding> findings;
  auto problems = nlohmann::json::array();
  for (const config::Problem& problem : checked.problems) {
    problems.push_back({{"file", problem.file},
                        {"line", problem.line},
                        {"column", problem.column},
                        {"key", problem.key},
                        {"value", problem.value},
                        {"expected", problem.expected},
                        {"code", name(code_of(problem))}});
    findings.push_back(finding_of(problem));
  }
  return document(report(findings, {{"file", path},
                                    {"kind", kind ? nlohmann::json(config::name(*kind)) : nlohmann::json()},
                                    {"problems", std::move(problems)}}));
}

int run(const ConfigOptions& options) {
  const auto text = platform::read_file(options.file, kMaxFile);
  if (!text.ok())
    return complain(finding(Code::UNREADABLE, "", options.file, text.error().message()), kUsage,
                    options.json);
  const auto kind = kind_of(options, *text);
  const Checked checked = kind.config ? check(*kind.config, *text, options.file) : Checked{"", kind.problems};
  print(options.json ? for_programs(kind.config, options.file, checked) : for_people(options.file, checked));
  return checked.problems.empty() ? kGood : kUsage;
}

}  // namespace

void add_config(CLI::App& app, const Global&, int& exit_status) {
  auto options = std::make_shared<ConfigOptions>();
  CLI::App* const group = app.add_subcommand("config", "The configuration files");
  group->require_subcommand(1);
  CLI::App* const command =
      group->add_subcommand("check", "Every error of a file, with line, key and what is allowed");
  command->add_option("FILE", options->file, "cluster.toml of a leader or agent.toml of a node")->required();
  command->add_option("--kind", options->kind, "cluster or agent; without it, told from the content")
      ->check(CLI::IsMember({"cluster", "agent"}));
  command->add_flag("--json", options->json, "One JSON document: the report and every problem");
  command->callback([=, &exit_status] { exit_status = run(*options); });
}

}  // namespace troika::cli
