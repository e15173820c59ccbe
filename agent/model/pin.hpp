// A manifest made from a model directory as it lies there, or from what Hugging Face's tools wrote beside it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/model/crew.hpp"
#include "agent/model/manifest.hpp"

namespace troika::model {

inline constexpr Bytes kManifestBlock{8u << 20};

struct PinPlan {
  std::string directory;
  std::string model;                   // empty: told by the cache's folder, else the directory's name
  std::string revision;                // empty: told by the cache's snapshot, else "unpinned"
  Bytes block_bytes = kManifestBlock;  // 0: no digests of blocks
  std::optional<std::pair<std::uint64_t, std::uint64_t>> output{};  // device and inode of a file to leave out
  CrewOptions crew{};
  std::vector<std::string> allowed{};  // names to leave out, and to allow besides the model's own files
};

struct Pinned {
  Manifest manifest;
  std::vector<Finding>
      findings;  // files that could not be read, changed, are surely not what their name says, or are missing
                 // by the others' numbers; the manifest is not to be used then
  bool cancelled = false;
};

struct PinProgress {
  Bytes done;
  Bytes total;
  std::uint32_t files_done = 0;
  std::uint32_t files_total = 0;
};

// Every regular file below the directory but those whose name, or whose folder's, begins with a dot. Error:
// the directory cannot be listed, or is empty.
Result<Pinned> pin_directory(const PinPlan& plan, const std::function<void(const PinProgress&)>& progress,
                             const std::atomic<bool>& cancel);

// trees/COMMIT.json of the hub's cache (format_version 1). `model` and `revision` empty: told by the path.
Result<Manifest> import_tree(const std::string& path, const std::string& model, const std::string& revision);
// .../trees/COMMIT.json of a snapshot of the hub's cache; empty: not a snapshot, or no such file.
std::string tree_of_snapshot(const std::string& directory);
// DIR/.cache/huggingface/download/**.metadata of `hf download --local-dir DIR`: commit, etag and time of each
// file. Where .cache/huggingface/trees/COMMIT.json is there too, that says what belongs to the model and how
// large it is; without it the sizes are those on disk. Refused: files of several revisions; without the tree
// also an unfinished download and a gap in the shards' numbers.
bool fetched_with_local_dir(const std::string& directory);
// `gone`: what becomes of a file that was fetched and is not there any more. A proof lists it (of 0 bytes),
// to miss it; a manifest for other machines cannot, as its size is not known, and is refused too where a file
// is not what was fetched.
enum class Gone { Listed, Refused };
Result<Manifest> import_local_directory(const std::string& directory, const std::string& model, Gone gone);

}  // namespace troika::model
