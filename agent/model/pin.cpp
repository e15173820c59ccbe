#include "agent/model/pin.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "agent/model/hub_files.hpp"
#include "agent/model/place.hpp"
#include "platform/files.hpp"

namespace troika::model {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;  // folders within one another
constexpr std::size_t kMostFiles = 100'000;
constexpr Bytes kLargestMetadata{64u << 10};
constexpr const char* kMetadataFolder = ".cache/huggingface/download";

// "org/name" of .../models--org--name/...; empty: not in such a cache.
std::string model_of_path(const fs::path& path) {
  constexpr std::string_view kBegin = "models--";
  for (const fs::path& part : path) {
    std::string text = part.string();
    if (!text.starts_with(kBegin)) continue;
    text.erase(0, kBegin.size());
    if (const auto at = text.find("--"); at != std::string::npos) text.replace(at, 2, "/");
    return text;
  }
  return {};
}

std::string last_name(const fs::path& path) {
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

// Names of regular files, links followed, by their path below `directory`.
Status list_files(const fs::path& directory, const std::string& below, int depth,
                  std::vector<std::string>& names) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator at(directory / below, error), end; !error && at != end; at.increment(error))
    entries.push_back(*at);
  if (error) return Error{"list", (directory / below).string(), error.message()};
  std::sort(entries.begin(), entries.end());
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) continue;
    const std::string path = below.empty() ? name : below + "/" + name;
    if (entry.is_directory(error) && !entry.is_symlink(error)) {
      if (depth == kDeepest) return Error{"list", path, "folders deeper than 8 are not a model's"};
      TROIKA_CHECK(list_files(directory, path, depth + 1, names));
    } else {
      names.push_back(path);
    }
    if (names.size() > kMostFiles) return Error{"list", directory.string(), "more than 100000 files"};
  }
  return Done{};
}

// Metadata comes with each file that was fetched: those that were not are in no list but in the shards' own
// names, PREFIX-00007-of-00046.safetensors.
Status check_shards_are_whole(const Manifest& manifest, const std::string& directory) {
  std::map<std::string, std::uint64_t> listed;  // by what follows "-of-", with the prefix
  for (const auto& [name, file] : manifest.files) {
    const auto of = name.rfind("-of-");
    if (!is_shard(name) || of == std::string::npos) continue;
    const auto dash = name.rfind('-', of - 1);
    if (of == 0 || dash == std::string::npos) continue;
    ++listed[name.substr(0, dash) + name.substr(of)];
  }
  for (const auto& [set, count] : listed) {
    const std::string digits = set.substr(set.rfind("-of-") + 4, 9);
    const std::uint64_t wanted = std::strtoull(digits.c_str(), nullptr, 10);
    if (count < wanted)
      return Error{
          "import", directory,
          std::to_string(count) + " of " + std::to_string(wanted) + " shards were fetched: fetch the rest"};
  }
  return Done{};
}

Result<FetchedFile> read_metadata(const fs::path& path) {
  TROIKA_TRY(text, platform::read_file(path.string(), kLargestMetadata));
  return parse_metadata(text, path.string());
}

}  // namespace

Result<Pinned> pin_directory(const PinPlan& plan, const std::function<void(const PinProgress&)>& progress,
                             const std::atomic<bool>& cancel) {
  TROIKA_TRY(root, find_root(plan.directory));
  Pinned pinned;
  TROIKA_CHECK(allow(pinned.manifest, plan.allowed, plan.directory));
  std::vector<std::string> names;
  TROIKA_CHECK(list_files(root.directory, "", 0, names));
  if (names.empty()) return Error{"pin", plan.directory, "no file lies in it"};
  pinned.manifest.model = plan.model.empty() ? model_of_path(root.directory) : plan.model;
  if (pinned.manifest.model.empty()) pinned.manifest.model = last_name(root.directory);
  pinned.manifest.revision = plan.revision;
  if (plan.revision.empty())
    pinned.manifest.revision = root.blobs.empty() ? "unpinned" : last_name(root.directory);
  std::vector<CrewTask> tasks;
  PinProgress at;
  for (const std::string& name : names) {
    if (std::binary_search(pinned.manifest.allowed.begin(), pinned.manifest.allowed.end(), name)) continue;
    FileFacts facts = look_at_file(root, name, ManifestFile{});
    if (facts.path.empty()) {
      pinned.findings.push_back(facts.finding ? *facts.finding
                                              : finding(Code::UNREADABLE, {}, name, "cannot find " + name));
      continue;
    }
    struct stat there {};
    if (plan.output && ::stat(facts.path.c_str(), &there) == 0 && there.st_dev == plan.output->first &&
        there.st_ino == plan.output->second)
      continue;
    const std::uint64_t block = facts.bytes > plan.block_bytes.count ? plan.block_bytes.count : 0;
    tasks.push_back({name, facts.path, facts.bytes, ManifestFile{}, block});
    at.total += Bytes{facts.bytes};
  }
  at.files_total = static_cast<std::uint32_t>(tasks.size());
  auto readings = read_files(
      tasks, plan.crew,
      [&](const CrewProgress& now) {
        at.done = Bytes{now.bytes};
        at.files_done = now.files;
        progress(at);
      },
      cancel);
  pinned.cancelled = cancel.load();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (readings[i].finding) pinned.findings.push_back(*std::move(readings[i].finding));
    ManifestFile file{Bytes{tasks[i].bytes}, std::move(readings[i].sha256), ""};
    if (!readings[i].blocks.empty()) {
      file.block_bytes = Bytes{tasks[i].block_bytes};
      file.blocks = std::move(readings[i].blocks);
    }
    pinned.manifest.files.emplace(tasks[i].name, std::move(file));
  }
  return pinned;
}

Result<Manifest> import_tree(const std::string& path, const std::string& model, const std::string& revision) {
  const std::string of_model = model.empty() ? model_of_path(fs::absolute(path)) : model;
  const std::string of_revision = revision.empty() ? fs::path(path).stem().string() : revision;
  if (of_model.empty()) return Error{"import", path, "its path names no model: give --name"};
  if (!is_hex(of_revision, 40))
    return Error{"import", path, "its name is not a commit of 40 digits: give --revision"};
  TROIKA_TRY(text, platform::read_file(path, kLargestManifest));
  return parse_tree(text, path, of_model, of_revision);
}

std::string tree_of_snapshot(const std::string& directory) {
  const auto root = find_root(directory);
  if (!root.ok() || root->blobs.empty()) return {};
  const fs::path tree =
      fs::path(root->blobs).parent_path() / "trees" / (last_name(root->directory) + ".json");
  std::error_code error;
  return fs::is_regular_file(tree, error) ? tree.string() : std::string{};
}

bool fetched_with_local_dir(const std::string& directory) {
  std::error_code error;
  return fs::is_directory(fs::path(directory) / kMetadataFolder, error);
}

Result<Manifest> import_local_directory(const std::string& directory, const std::string& model, Gone gone) {
  const fs::path folder = fs::path(directory) / kMetadataFolder;
  constexpr std::string_view kEnd = ".metadata";
  std::error_code error;
  Manifest manifest;
  std::string first;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().lexically_relative(folder).string();
    if (name.ends_with(".incomplete"))
      return Error{"import", directory, name + " is of a download that has not finished: fetch it whole"};
    std::error_code ignored;
    if (!name.ends_with(kEnd) || !fs::is_regular_file(at->symlink_status(ignored))) continue;
    name.resize(name.size() - kEnd.size());
    TROIKA_TRY(metadata, read_metadata(at->path()));
    if (manifest.revision.empty()) {
      manifest.revision = metadata.commit;
      first = name;
    } else if (metadata.commit != manifest.revision) {
      return Error{"import", directory,
                   first + " is of revision " + manifest.revision + ", " + name + " of " + metadata.commit +
                       ": fetch one revision whole"};
    }
    std::error_code no_size;
    const auto bytes = fs::file_size(fs::path(directory) / name, no_size);
    if (no_size && gone == Gone::Refused)
      return Error{"import", directory,
                   name + " was fetched and is gone (" + no_size.message() + "): fetch it again"};
    TROIKA_TRY(file, file_of_etag(metadata.etag, Bytes{no_size ? 0 : bytes}, name));
    manifest.files.emplace(name, std::move(file));
    if (manifest.files.size() > kMostFiles) return Error{"import", directory, "more than 100000 files"};
  }
  if (error) return Error{"import", folder.string(), error.message()};
  if (manifest.files.empty())
    return Error{"import", folder.string(),
                 "no .metadata is there: the directory was not fetched with --local-dir"};
  TROIKA_CHECK(check_shards_are_whole(manifest, directory));
  manifest.model = model.empty() ? last_name(fs::absolute(directory).lexically_normal()) : model;
  TROIKA_CHECK(check_manifest(manifest, directory));
  return manifest;
}

}  // namespace troika::model
