#include "cli/demo_command.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/demo/run.hpp"

namespace troika::cli {

void add_demo(CLI::App& app, const Global&, int& exit_status) {
  struct DemoOptions {
    demo::RunOptions run;
    std::string stop_directory;
  };
  auto options = std::make_shared<DemoOptions>();
  CLI::App* const command = app.add_subcommand("demo",
                                               "A whole cluster on this machine: leader, six agents, two "
                                               "replicas of three stages, and what they survive");
  command
      ->add_option("--dir", options->run.directory,
                   "Folder to make and use; without: a new one in TMPDIR or /tmp")
      ->type_name("DIR");
  command
      ->add_option("--programs", options->run.programs,
                   "Where troikad, troika-agent, troika-keeper and troika-stage are")
      ->type_name("DIR");
  command->add_option("--json", options->run.json, "Write the measured facts here (docs/demo-facts.md)")
      ->type_name("FILE");
  CLI::Option* const keep = command->add_flag(
      "--keep", options->run.keep, "Leave the cluster running at the end, and say how to talk to it");
  command
      ->add_option("--stop", options->stop_directory,
                   "End what --keep left in DIR, or the only one, and remove it")
      ->type_name("DIR")
      ->expected(0, 1)
      ->excludes(keep);
  CLI::Option* const stop = command->get_option("--stop");
  command->footer(
      "Ctrl-C or SIGTERM at any time ends and removes everything. Exit status: 0 when every step was seen.");
  command->callback([=, &exit_status] {
    exit_status = stop->count() > 0 ? demo::stop_kept(options->stop_directory) : demo::run_demo(options->run);
  });
}

}  // namespace troika::cli
