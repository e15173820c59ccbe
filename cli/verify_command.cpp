#include "cli/verify_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "agent/model/file_reader.hpp"
#include "agent/model/pin.hpp"
#include "agent/model/place.hpp"
#include "agent/model/proof.hpp"
#include "cli/audit_command.hpp"
#include "cli/interrupt.hpp"
#include "cli/memory.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "policies/download.hpp"

namespace troika::cli {
namespace {

struct VerifyOptions {
  std::string directory;
  std::string manifest;
  std::string fetch_log;
  unsigned threads = 0;
  bool deep = false;
  bool json = false;
};

nlohmann::json for_programs(const model::ModelProof& proof, const std::string& method) {
  auto files = nlohmann::json::array();
  for (const model::FileProof& one : proof.list)
    files.push_back({{"name", one.name},
                     {"bytes", one.bytes.count},
                     {"sha256", one.sha256},
                     {"status", one.status},
                     {"cached", one.cached}});
  return report(proof.findings, {{"files", std::move(files)},
                                 {"tensors", proof.tensors},
                                 {"bytes", proof.bytes.count},
                                 {"missing_bytes", proof.missing.count},
                                 {"cached", proof.cached},
                                 {"manifest_digest", proof.manifest_digest},
                                 {"pinned_by", method},
                                 {"seconds", proof.seconds}});
}

// Why the next proof will read files again; empty: it need not.
std::string read_again(const model::ModelProof& proof) {
  std::size_t count = 0;
  const model::FileProof* first = nullptr;
  for (const model::FileProof& one : proof.list) {
    if (!one.remembered || *one.remembered == policies::Remember::Yes) continue;
    if (count++ == 0) first = &one;
  }
  if (count == 0) return {};
  return fmt::format(
      "The next proof reads {} again: {}\n",
      count == 1 ? shown(first->name) : fmt::format("{} and {} more files", shown(first->name), count - 1),
      policies::text(*first->remembered));
}

std::string for_people(const VerifyOptions& options, const model::ModelProof& proof) {
  const Style style = style_of(STDOUT_FILENO);
  std::string text;
  for (const Finding& one : proof.findings)
    text += render_finding(one, style);
  const Verdict verdict = verdict_of(proof.findings);
  const Tone tone = verdict == Verdict::Ok      ? Tone::Good
                    : verdict == Verdict::Error ? Tone::Bad
                                                : Tone::Doubtful;
  text += fmt::format("{}: {}: {} of {} files proven, {} shards, {} tensors", shown(options.directory),
                      toned(name(verdict), tone, style), proof.files, proof.list.size(), proof.shards,
                      proof.tensors);
  if (proof.cached > 0) text += fmt::format(", {} files unchanged since an earlier proof", proof.cached);
  text += fmt::format(", {} read in {}", bytes_text(proof.bytes), seconds_text(proof.seconds));
  if (proof.missing.count > 0) text += fmt::format(", {} to be fetched", bytes_text(proof.missing));
  if (proof.seconds > 0 && proof.bytes.count > 0) {
    const double rate = static_cast<double>(proof.bytes.count) / proof.seconds;
    text += fmt::format(", {}/s", bytes_text(Bytes{static_cast<std::uint64_t>(rate)}));
  }
  return text + "\n" + read_again(proof);
}

// The manifest that was given, else what a downloader left beside the model.
Result<model::Manifest> manifest_for(const VerifyOptions& options, std::string& pinned_by) {
  if (!options.manifest.empty()) {
    pinned_by = options.manifest;
    return model::read_manifest(options.manifest);
  }
  if (auto tree = model::tree_of_snapshot(options.directory); !tree.empty()) {
    pinned_by = tree;
    return model::import_tree(tree, "", "");
  }
  pinned_by = options.directory + "/.cache/huggingface/download";
  if (model::fetched_with_local_dir(options.directory))
    return model::import_local_directory(options.directory, "", model::Gone::Listed);
  return Error{"prove", options.directory, "nothing says what its bytes must be"};
}

// The last MiB: a downloader's last words are the ones that count.
Result<std::vector<Finding>> told_by_downloader(const std::string& path) {
  if (path.empty()) return std::vector<Finding>{};
  constexpr std::uint64_t kMost = 1u << 20;
  TROIKA_TRY(reader, model::FileReader::open(path));
  const std::uint64_t bytes = reader.stamp().bytes;
  const std::uint64_t part = std::min(bytes, kMost);
  TROIKA_TRY(text, reader.read_at(bytes - part, part));
  return policies::judge_download(text);
}

// Nothing can be proven; what the downloader wrote may tell why.
int unprovable(const Finding& why, Exit status, std::vector<Finding> told, bool json) {
  if (told.empty()) return complain(why, status, json);
  told.push_back(why);
  worst_first(told);
  if (json) {
    print(document(report(told, {})));
  } else {
    const Style style = style_of(STDOUT_FILENO);
    for (const Finding& one : told)
      print(render_finding(one, style));
  }
  return troika::exit_status(verdict_of(told));
}

int verify(const VerifyOptions& options) {
  const auto told = told_by_downloader(options.fetch_log);
  if (!told.ok())
    return complain(finding(Code::UNREADABLE, "", options.fetch_log, told.error().message(),
                            "name the file that the downloader's standard error was written to"),
                    kUsage, options.json);
  if (const auto root = model::find_root(options.directory); !root.ok())
    return unprovable(finding(Code::UNREADABLE, "", options.directory, root.error().message(),
                              "check --model: the directory that holds the model's files"),
                      kUsage, *told, options.json);
  std::string pinned_by;
  const auto manifest = manifest_for(options, pinned_by);
  if (!manifest.ok() && options.manifest.empty())
    return unprovable(finding(Code::CANNOT_TELL, "", options.directory, manifest.error().message(),
                              "give --manifest FILE, or fetch the model whole; troika manifest create pins a "
                              "directory as it is"),
                      kCannotTell, *told, options.json);
  if (!manifest.ok())
    return complain(finding(Code::MANIFEST_INVALID, "", options.manifest, manifest.error().message(),
                            "make it anew: troika manifest import or create"),
                    kUsage, options.json);
  note_interrupts();
  std::atomic<bool> cancel{false};
  model::ProofPlan plan{options.directory, *manifest, ""};
  plan.crew.threads = options.threads;
  const auto record = open_record();
  plan.crew.memory = {record.get(), options.deep};
  model::ModelProof proof;
  {
    Progress progress("verify");
    proof = model::prove_model(
        plan,
        [&](const model::ProofProgress& at) {
          if (interrupted_by() != 0) cancel = true;
          progress.tell({at.done, at.total, at.files_done, at.files_total});
        },
        cancel);
  }
  tell_health(record.get());
  // An old log beside a tree that is whole tells nothing.
  if (proof.files < manifest->files.size())
    proof.findings.insert(proof.findings.end(), told->begin(), told->end());
  worst_first(proof.findings);
  if (const int signal = interrupted_by(); signal != 0) {
    complain(finding(Code::CANNOT_TELL, "", options.directory, "interrupted before every byte was read",
                     "verify again"),
             kCannotTell, options.json);
    return exit_status_of(signal);
  }
  print(options.json ? document(for_programs(proof, pinned_by)) : for_people(options, proof));
  return troika::exit_status(verdict_of(proof.findings));
}

}  // namespace

void add_verify(CLI::App& app, const Global& global, int& exit_status) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* const command = app.add_subcommand("verify",
                                               "Prove the model: every byte by its digest, headers and index "
                                               "by each other. Without --model on every node, "
                                               "through the leader");
  CLI::Option* const directory =
      command
          ->add_option(
              "--model", options->directory,
              "A directory on this machine, or a snapshot in Hugging Face's cache; no daemon is needed")
          ->type_name("DIR");
  command
      ->add_option("--manifest", options->manifest,
                   "What its bytes must be; without: what Hugging Face's tools wrote down beside it")
      ->type_name("FILE")
      ->needs(directory);
  command
      ->add_option("--fetch-log", options->fetch_log,
                   "What the downloader wrote on standard error: it tells why files are missing or cut off")
      ->type_name("FILE")
      ->needs(directory);
  command->add_option("--threads", options->threads, "0: as many as processors, at most 8")
      ->check(CLI::Range(0U, model::kMostThreads))
      ->capture_default_str()
      ->needs(directory);
  command->add_flag("--deep", options->deep,
                    "Read every byte, also of files that did not change since a proof");
  command->add_flag("--json", options->json, "One JSON document: the report and every file or node");
  command->callback([=, &global, &exit_status] {
    exit_status = directory->count() > 0 ? verify(*options) : audit(global, options->deep, options->json);
  });
}

}  // namespace troika::cli
