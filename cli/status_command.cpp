#include "cli/status_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "cli/client.hpp"
#include "cli/output.hpp"
#include "cli/render.hpp"
#include "cli/report.hpp"
#include "protocol/codec.hpp"

namespace troika::cli {
namespace {

struct StatusOptions {
  bool watch = false;
  bool json = false;
};

// All that the leader knows; the number of its answer means nothing outside the conversation.
nlohmann::json own_fields(const protocol::StatusReply& status) {
  auto fields = protocol::to_json(status);
  fields.erase("re");
  return fields;
}

std::string line(const nlohmann::json& report) {
  return report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int show_once(const Global& global, const StatusOptions& options) {
  const auto answer = ask_status(global);
  if (!answer.ok()) return complain(answer.error, answer.failure, options.json, answer.remedy);
  const auto findings = findings_of(*answer.reply);
  print(options.json ? document(report(findings, own_fields(*answer.reply)))
                     : render_status(*answer.reply, style_of(STDOUT_FILENO)));
  return troika::exit_status(verdict_of(findings));
}

// What changes by itself with every look would make every look a change.
protocol::StatusReply without_clocks(protocol::StatusReply status) {
  status.re = 0;
  for (auto& replica : status.replicas)
    replica.phase_seconds = 0;
  for (auto& node : status.nodes) {
    if (node.connected) node.heartbeat_age_seconds = 0;
    node.facts.memory_available = Bytes{0};
    node.facts.psi_memory_some = node.facts.psi_memory_full = -1;
  }
  return status;
}

// Until interrupted. On a terminal the screen is drawn anew each second; elsewhere a block is printed at each
// change.
int watch(const Global& global, const StatusOptions& options) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && !options.json;
  std::optional<protocol::StatusReply> last;
  std::string last_trouble;
  while (true) {
    const auto answer = ask_status(global);
    std::string text;
    if (!answer.ok()) {
      if (answer.failure == kUsage)
        return complain(answer.error, answer.failure, options.json, answer.remedy);
      const std::string trouble = answer.error.message();
      if (terminal || trouble != last_trouble) {
        complain(answer.error, answer.failure, false, answer.remedy);
        if (options.json)
          print(line(report({cli::trouble(answer.error, answer.failure, answer.remedy)}, {})));
      }
      last_trouble = trouble;
      last.reset();
    } else {
      last_trouble.clear();
      auto steady = without_clocks(*answer.reply);
      if (options.json)
        text = line(report(findings_of(*answer.reply), own_fields(*answer.reply)));
      else
        text = render_status(*answer.reply, style_of(STDOUT_FILENO));
      if (terminal) {
        print("\033[H\033[2J" + text);
      } else if (!last || *last != steady) {
        print(options.json ? text : text + "\n");
      }
      last = std::move(steady);
    }
    std::this_thread::sleep_for(std::chrono::seconds{1});  // the pace of the screen; nothing is waited for
  }
}

}  // namespace

void add_status(CLI::App& app, const Global& global, int& exit_status) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* const command = app.add_subcommand(
      "status", "Replicas, stages, nodes, links, memory, gateway and open incidents on one screen");
  command->add_flag(
      "--watch,-w", options->watch,
      "Keep showing it until interrupted; not on a terminal: a block (--json: a line) at each change");
  command->add_flag("--json", options->json, "One JSON document: the report and everything the leader knows");
  command->callback([=, &global, &exit_status] {
    exit_status = options->watch ? watch(global, *options) : show_once(global, *options);
  });
}

}  // namespace troika::cli
