#include "cli/manifest_command.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agent/model/pin.hpp"
#include "agent/model/proof.hpp"
#include "cli/interrupt.hpp"
#include "cli/memory.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/terminal.hpp"

namespace troika::cli {
namespace {

struct ManifestOptions {
  std::string source;  // a directory or a file
  std::string name;
  std::string revision;
  std::vector<std::string> allowed;
  bool no_blocks = false;
};

void tell(const Finding& one) {
  std::fprintf(stderr, "troika: %s\n", shown(one.message).c_str());
  if (!one.remedy.empty()) std::fprintf(stderr, "  -> %s\n", shown(one.remedy).c_str());
}

int create(const ManifestOptions& options) {
  note_interrupts();
  std::atomic<bool> cancel{false};
  model::PinPlan plan{options.source, options.name, options.revision};
  plan.allowed = options.allowed;
  if (options.no_blocks) plan.block_bytes = Bytes{};
  // What is read here need not be read again to be proven.
  const auto record = open_record();
  plan.crew.memory = {record.get(), true};
  // Its own output, where that lies in the directory.
  struct stat output {};
  if (::fstat(STDOUT_FILENO, &output) == 0 && S_ISREG(output.st_mode))
    plan.output = {static_cast<std::uint64_t>(output.st_dev), static_cast<std::uint64_t>(output.st_ino)};
  auto pinned = [&] {
    Progress progress("manifest create");
    return model::pin_directory(
        plan,
        [&](const model::PinProgress& at) {
          if (interrupted_by() != 0) cancel = true;
          progress.tell({at.done, at.total, at.files_done, at.files_total});
        },
        cancel);
  }();
  tell_health(record.get());
  if (!pinned.ok()) return complain(pinned.error(), kUsage);
  if (const int signal = interrupted_by(); signal != 0) return exit_status_of(signal);
  // A tree that is broken must not be pinned: every node would be held to it.
  model::ProofPlan sound{options.source, pinned->manifest, ""};
  sound.read_bytes = false;
  auto findings = std::move(pinned->findings);
  if (findings.empty())
    findings = model::prove_model(
                   sound, [](const auto&) {}, cancel)
                   .findings;
  for (const Finding& one : findings)
    tell(one);
  const bool unfinished = std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
    return one.code == Code::LEFTOVER_INCOMPLETE;
  });
  if (unfinished) {
    std::fprintf(stderr, "troika: no manifest is written while a download is unfinished\n");
    return kWrong;
  }
  if (const Verdict verdict = verdict_of(findings); verdict != Verdict::Ok && verdict != Verdict::Warning) {
    std::fprintf(stderr, "troika: no manifest is written of a directory that is not sound\n");
    return troika::exit_status(verdict);
  }
  print(model::write_manifest(pinned->manifest));
  return kGood;
}

int import(const ManifestOptions& options) {
  std::error_code error;
  const bool directory = std::filesystem::is_directory(options.source, error);
  const auto holds = [&](const char* folder) {
    return directory && std::filesystem::is_directory(std::filesystem::path(options.source) / folder, error);
  };
  if (holds("snapshots") && holds("blobs"))
    return complain(
        {"import", options.source,
         "it is a repository in Hugging Face's cache: name its trees/COMMIT.json or snapshots/COMMIT"},
        kUsage);
  const std::string tree = directory ? model::tree_of_snapshot(options.source) : options.source;
  auto manifest = tree.empty()
                      ? model::import_local_directory(options.source, options.name, model::Gone::Refused)
                      : model::import_tree(tree, options.name, options.revision);
  if (!manifest.ok()) return complain(manifest.error(), kUsage);
  if (!options.revision.empty() && manifest->revision != options.revision)
    return complain(
        {"import", options.source, "it is of revision " + manifest->revision + ", not " + options.revision},
        kUsage);
  if (const auto good = model::allow(*manifest, options.allowed, options.source); !good.ok())
    return complain(good.error(), kUsage);
  print(model::write_manifest(*manifest));
  return kGood;
}

}  // namespace

void add_manifest(CLI::App& app, const Global&, int& exit_status) {
  CLI::App* const group = app.add_subcommand("manifest", "What a model's bytes must be, as a file");
  group->require_subcommand(1);
  const auto command = [&](const char* name, const char* description, int (*run)(const ManifestOptions&)) {
    auto options = std::make_shared<ManifestOptions>();
    CLI::App* const made = group->add_subcommand(name, description);
    made->add_option("--name", options->name, "The model's name; without: told by the path")
        ->type_name("NAME");
    made->add_option("--revision", options->revision, "Its commit of 40 digits; without: told by the path")
        ->type_name("R")
        ->check([](const std::string& text) {
          return model::is_hex(text, 40) ? std::string{}
                                         : "a commit of 40 lower-case hexadecimal digits is expected";
        });
    made->add_option("--allow", options->allowed,
                     "A file that may lie in the directory besides; may be given several times")
        ->type_name("FILE")
        ->allow_extra_args(false);
    made->callback([=, &exit_status] { exit_status = run(*options); });
    return std::pair{made, options};
  };
  const auto [create_command, create_options] =
      command("create", "Pin a directory as it lies there; the manifest goes to stdout", create);
  create_command->add_option("--model", create_options->source, "The directory")
      ->required()
      ->type_name("DIR");
  create_command->add_flag("--no-blocks", create_options->no_blocks,
                           "Without digests of each 8 MiB, by which a mismatch names the place");
  const auto [import_command, import_options] = command(
      "import", "From Hugging Face's trees/COMMIT.json, or a directory fetched with --local-dir; to stdout",
      import);
  import_command->add_option("SOURCE", import_options->source, "The tree's file, or the directory")
      ->required();
}

}  // namespace troika::cli
