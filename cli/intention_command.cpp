#include "cli/intention_command.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>

#include "cli/client.hpp"
#include "cli/output.hpp"
#include "cli/render.hpp"
#include "cli/report.hpp"
#include "protocol/codec.hpp"

namespace troika::cli {
namespace {

using protocol::Verb;

// The leader gives up on work without progress after 20 minutes and says so; a silence beyond that is its
// own.
constexpr Duration kSilence = std::chrono::minutes{30};

struct Intention {
  Verb verb;
  const char* help;
};
constexpr std::array<Intention, 5> kIntentions{{
    {Verb::Start, "Prove, start and serve; clears an open breaker"},
    {Verb::Stop, "Let requests in flight end, stop every stage, prove that nothing is left"},
    {Verb::Restart, "Stop, then start under a new epoch"},
    {Verb::Drain, "Take no new request; stop when those in flight have ended"},
    {Verb::Failover, "Let the other replica serve the next request"},
}};

struct IntentionOptions {
  std::string replica;
  bool no_wait = false;
  bool json = false;
};

int give(const Global& global, Verb verb, const IntentionOptions& options) {
  std::string last;
  const auto progress = [&](std::string_view text) {
    if (text == last) return;
    last = text;
    std::fprintf(stderr, "%s\n", shown(text).c_str());
  };
  const auto answer = give_command(global, {verb, options.replica, options.no_wait}, progress, kSilence);
  if (!answer.ok()) {
    if (answer.failure == kCannotTell)
      std::fputs(
          "troika: the leader went away before it told the outcome; the command may go on: see troika "
          "status\n",
          stderr);
    return complain(answer.error, answer.failure, options.json, answer.remedy);
  }
  const protocol::CommandDone& done = *answer.reply;
  // A replica that the cluster does not have is a slip of the command line; the leader's text names those it
  // has.
  const bool unknown = std::any_of(done.findings.begin(), done.findings.end(),
                                   [](const Finding& one) { return one.code == Code::NOT_FOUND; });
  if (options.json) {
    auto out = report(done.findings, {{"command", protocol::name(verb)}, {"text", done.text}});
    out["verdict"] = name(done.verdict);
    print(document(out));
  } else if (unknown) {
    return complain(done.findings.front(), kUsage);
  } else {
    const Style style = style_of(STDOUT_FILENO);
    std::string text = shown(done.text) + "\n";
    for (const Finding& finding : done.findings)
      text += render_finding(finding, style);
    print(text);
  }
  return unknown ? int{kUsage} : troika::exit_status(done.verdict);
}

}  // namespace

void add_intentions(CLI::App& app, const Global& global, int& exit_status) {
  for (const Intention& intention : kIntentions) {
    auto options = std::make_shared<IntentionOptions>();
    CLI::App* const command = app.add_subcommand(std::string(protocol::name(intention.verb)), intention.help);
    if (intention.verb == Verb::Failover)
      command->add_option("--to", options->replica, "The replica to serve; without: the other one")
          ->type_name("REPLICA");
    else
      command->add_option("REPLICA", options->replica, "Without: all of them");
    command->add_flag("--no-wait", options->no_wait, "Return when the leader has written the intention down");
    command->add_flag("--json", options->json, "One JSON document with the outcome");
    const Verb verb = intention.verb;
    command->callback([=, &global, &exit_status] { exit_status = give(global, verb, *options); });
  }
}

}  // namespace troika::cli
