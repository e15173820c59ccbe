// troika: the operator's command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/command.hpp"
#include "cli/config_command.hpp"
#include "cli/demo_command.hpp"
#include "cli/incidents_command.hpp"
#include "cli/intention_command.hpp"
#include "cli/manifest_command.hpp"
#include "cli/output.hpp"
#include "cli/pki_command.hpp"
#include "cli/status_command.hpp"
#include "cli/terminal.hpp"
#include "cli/verify_command.hpp"

namespace {

void add_global(CLI::App& app, troika::cli::Global& global) {
  app.add_option("--socket", global.socket, "Control socket of the leader on this machine")
      ->envname("TROIKA_SOCKET")
      ->capture_default_str()
      ->type_name("PATH");
  CLI::Option* const leader =
      app.add_option("--leader", global.leader,
                     "A leader elsewhere, instead of the socket; with --ca, --cert and --key")
          ->type_name("HOST:PORT");
  const auto file = [&](const char* name, std::string& path, const char* help) {
    CLI::Option* const option = app.add_option(name, path, help)->type_name("FILE")->needs(leader);
    leader->needs(option);
  };
  file("--ca", global.tls.ca, "The cluster's CA certificate");
  file("--cert", global.tls.certificate, "The operator's certificate");
  file("--key", global.tls.key, "The operator's key");
}

int run(int argc, char** argv) {
  using namespace troika::cli;
  int exit_status = kGood;
  Global global{"/run/troika/control.sock", "", {}};
  CLI::App app("Brings up and supervises pipeline-parallel LLM clusters.", "troika");
  app.set_version_flag("--version", std::string("troika ") + TROIKA_VERSION);
  app.require_subcommand(1);
  app.fallthrough();  // --socket and its like may also follow the command
  app.footer(
      "Exit status: 0 good; 1 it ran and something is wrong; 2 usage or configuration; 3 the daemon cannot "
      "be reached;\n"
      "4 it could not tell; 128 and the number of the signal that interrupted it.");
  add_global(app, global);
  add_intentions(app, global, exit_status);
  add_status(app, global, exit_status);
  add_incidents(app, global, exit_status);
  add_verify(app, global, exit_status);
  add_manifest(app, global, exit_status);
  add_config(app, global, exit_status);
  add_pki(app, global, exit_status);
  add_demo(app, global, exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& e) {
    // CLI11 misses a command here even where an unknown one was given.
    const auto words = app.remaining();
    if (words.empty() || !app.get_subcommands().empty()) return app.exit(e), kUsage;
    std::fprintf(stderr, "troika: unknown command %s\nRun with --help for more information.\n",
                 shown(words.front()).c_str());
    return kUsage;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? finish_output(kGood) : kUsage;
  }
  return finish_output(exit_status);
}

}  // namespace

int main(int argc, char** argv) {
  troika::cli::hold_standard_streams();
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "troika: %s\n", e.what());
    return troika::cli::kCannotTell;
  }
}
