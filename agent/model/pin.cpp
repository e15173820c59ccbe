#include "agent/model/pin.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "agent/model/digest.hpp"
#include "agent/model/hub_files.hpp"
#include "agent/model/place.hpp"
#include "agent/model/strays.hpp"
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

// The numbers of a set of shards, PREFIX-00007-of-00046.safetensors.
struct NumberedShards {
  std::string prefix;  // with the last '-'
  std::size_t width = 0;
  std::string rest;  // from "-of-" on
  std::uint64_t total = 0;
  std::set<std::uint64_t> numbers;

  std::string name(std::uint64_t number) const {
    std::string digits = std::to_string(number);
    return prefix + std::string(width - std::min(width, digits.size()), '0') + digits + rest;
  }
  // The first that is missing.
  std::optional<std::string> gap() const {
    const std::uint64_t first = numbers.count(0) != 0 ? 0 : 1;
    for (std::uint64_t i = first; i < first + total && numbers.size() < total; ++i)
      if (numbers.count(i) == 0) return name(i);
    return std::nullopt;
  }
};

std::vector<NumberedShards> numbered_shards(const Manifest& manifest) {
  std::map<std::string, NumberedShards> sets;
  const auto number_in = [](std::string_view digits) {
    constexpr std::size_t kMostDigits = 9;
    std::uint64_t value = 0;
    const bool good = !digits.empty() && digits.size() <= kMostDigits &&
                      digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (good) std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return good ? std::optional{value} : std::nullopt;
  };
  for (const auto& [name, file] : manifest.files) {
    constexpr std::string_view kOf = "-of-", kEnd = ".safetensors";
    const std::size_t of = name.rfind(kOf);
    const std::size_t dash = of == std::string::npos || of == 0 ? std::string::npos : name.rfind('-', of - 1);
    if (!is_shard(name) || dash == std::string::npos) continue;
    const std::string_view all = name;
    const auto number = number_in(all.substr(dash + 1, of - dash - 1));
    const auto total = number_in(all.substr(of + kOf.size(), all.size() - of - kOf.size() - kEnd.size()));
    if (!number || !total) continue;
    NumberedShards& set = sets[name.substr(0, dash) + name.substr(of)];
    set.prefix = name.substr(0, dash + 1);
    set.width = of - dash - 1;
    set.rest = name.substr(of);
    set.total = *total;
    set.numbers.insert(*number);
  }
  std::vector<NumberedShards> out;
  for (auto& [key, set] : sets)
    out.push_back(std::move(set));
  return out;
}

// Metadata comes with each file that was fetched: those that were not are in no list but in the shards' own
// names.
Status check_shards_are_whole(const Manifest& manifest, const std::string& directory) {
  for (const NumberedShards& set : numbered_shards(manifest))
    if (const auto gap = set.gap())
      return Error{"import", directory,
                   std::to_string(set.numbers.size()) + " of " + std::to_string(set.total) +
                       " shards were fetched, without " + *gap + ": fetch the rest"};
  return Done{};
}

// The list of files that a newer `hf download --local-dir` leaves; empty: none.
std::string tree_of_local_directory(const std::string& directory, const std::string& revision) {
  const fs::path tree = fs::path(directory) / ".cache/huggingface/trees" / (revision + ".json");
  std::error_code error;
  return fs::is_regular_file(tree, error) ? tree.string() : std::string{};
}

// What the whole revision is, of which `fetched` has some files. Of those that were not fetched only what a
// loader takes is wanted: a download may leave out the rest on purpose.
Result<Manifest> by_tree(const std::string& tree, const std::string& directory, const Manifest& fetched) {
  TROIKA_TRY(text, platform::read_file(tree, kLargestManifest));
  TROIKA_TRY(whole, parse_tree(text, tree, fetched.model, fetched.revision));
  for (const auto& [name, file] : fetched.files) {
    const auto listed = whole.files.find(name);
    if (listed == whole.files.end() || listed->second.sha256 != file.sha256 ||
        listed->second.git_sha1 != file.git_sha1)
      return Error{"import", directory,
                   name + " was fetched as another file than " + tree + " lists: fetch the revision again"};
  }
  Manifest wanted = whole;
  std::erase_if(wanted.files, [&](const auto& one) {
    const bool of_loader = one.first.find('/') == std::string::npos && loader_takes(one.first);
    std::error_code error;
    return fetched.files.count(one.first) == 0 && !of_loader &&
           !fs::exists(fs::path(directory) / one.first, error);
  });
  return wanted;
}

// Metadata tells no sizes. Those on disk are right if the bytes are: a manifest for other machines must not
// hold them to a file that was cut off.
Status check_size_on_disk(const ModelRoot& root, const std::string& directory, const std::string& name,
                          const ManifestFile& file) {
  const FileFacts facts = look_at_file(root, name, file);
  if (facts.finding) return Error{"import", directory, facts.finding->message + ": fetch it again"};
  constexpr Bytes kMostRead{256u << 20};
  if (is_shard(name) || file.bytes > kMostRead) return Done{};
  TROIKA_TRY(text, platform::read_file(facts.path, kMostRead));
  Hasher git = Hasher::git_blob(text.size());
  git.update(text.data(), text.size());
  const bool right = file.sha256.empty() ? git.hex() == file.git_sha1 : sha256_hex(text) == file.sha256;
  return right ? Status{Done{}}
               : Status{Error{"import", directory, name + " is not what was fetched: fetch it again"}};
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
  for (const std::string& name : names)
    if (const auto reason = wrong_with_name(name); !reason.empty())
      return Error{"pin", plan.directory,
                   "the name of the file \"" + name + "\": " + std::string(reason) + "; rename or remove it"};
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
    if (auto foreign = foreign_body(facts)) pinned.findings.push_back(*std::move(foreign));
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
  for (const NumberedShards& set : numbered_shards(pinned.manifest))
    if (const auto gap = set.gap())
      pinned.findings.push_back(finding(Code::MISSING_SHARD, {}, *gap,
                                        *gap + " is not there: by their names " + std::to_string(set.total) +
                                            " shards belong together, and " +
                                            std::to_string(set.numbers.size()) + " are there",
                                        "fetch the model whole"));
  return pinned;
}

Result<Manifest> import_tree(const std::string& path, const std::string& model, const std::string& revision) {
  const std::string of_model = model.empty() ? model_of_path(fs::absolute(path)) : model;
  const std::string of_revision = revision.empty() ? fs::path(path).stem().string() : revision;
  TROIKA_TRY(text, platform::read_file(path, kLargestManifest));
  if (of_model.empty()) return Error{"import", path, "its path names no model: give --name"};
  if (!is_hex(of_revision, 40))
    return Error{"import", path, "its name is not a commit of 40 digits: give --revision"};
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
  std::string first, unfinished, gone_file;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().lexically_relative(folder).string();
    if (name.ends_with(".incomplete")) unfinished = name;
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
    if (no_size) gone_file = name;
    TROIKA_TRY(file, file_of_etag(metadata.etag, Bytes{no_size ? 0 : bytes}, name));
    manifest.files.emplace(name, std::move(file));
    if (manifest.files.size() > kMostFiles) return Error{"import", directory, "more than 100000 files"};
  }
  if (error) return Error{"import", folder.string(), error.message()};
  manifest.model = model.empty() ? last_name(fs::absolute(directory).lexically_normal()) : model;
  if (const std::string tree = tree_of_local_directory(directory, manifest.revision); !tree.empty())
    return by_tree(tree, directory, manifest);
  // From here on nothing tells what else belongs to the model, and how large it is.
  if (!unfinished.empty())
    return Error{"import", directory, unfinished + " is of a download that has not finished: fetch it whole"};
  if (manifest.files.empty())
    return Error{"import", folder.string(),
                 "no .metadata is there: the directory was not fetched with --local-dir"};
  TROIKA_CHECK(check_shards_are_whole(manifest, directory));
  TROIKA_CHECK(check_manifest(manifest, directory));
  if (gone == Gone::Listed) return manifest;
  if (!gone_file.empty())
    return Error{"import", directory, gone_file + " was fetched and is gone: fetch it again"};
  TROIKA_TRY(root, find_root(directory));
  for (const auto& [name, file] : manifest.files)
    TROIKA_CHECK(check_size_on_disk(root, directory, name, file));
  return manifest;
}

}  // namespace troika::model
