#include "agent/model/revision.hpp"

#include <algorithm>

namespace troika::model {
namespace {

std::string named(const Manifest& manifest) {
  return manifest.revision.empty() ? manifest.model : manifest.model + "@" + manifest.revision;
}

Finding mismatch(const Manifest& manifest, std::string message, Evidence evidence) {
  return finding(Code::REVISION_MISMATCH, {}, named(manifest), std::move(message),
                 "fetch the revision of the manifest, or use the manifest of this revision",
                 std::move(evidence));
}

}  // namespace

std::optional<Finding> other_revision(const Manifest& manifest, const std::vector<FileFacts>& facts,
                                      const Strays& strays) {
  std::size_t shards = 0, missing = 0, other_size = 0;
  std::uint64_t bytes = 0, expected_bytes = 0;
  for (const FileFacts& file : facts) {
    if (!is_shard(file.name)) continue;
    const ManifestFile& expected = manifest.files.at(file.name);
    ++shards;
    bytes += file.bytes;
    expected_bytes += expected.bytes.count;
    if (file.finding && file.finding->code == Code::MISSING_SHARD) ++missing;
    if (file.whole && file.bytes != expected.bytes.count) ++other_size;
  }
  const Evidence evidence{{"shards_in_manifest", static_cast<std::int64_t>(shards)},
                          {"shards_not_in_manifest", static_cast<std::int64_t>(strays.shards.size())},
                          {"shards_missing", static_cast<std::int64_t>(missing)},
                          {"shards_of_other_size", static_cast<std::int64_t>(other_size)},
                          {"bytes", static_cast<std::int64_t>(bytes)},
                          {"expected_bytes", static_cast<std::int64_t>(expected_bytes)}};
  if (shards > 0 && other_size * 2 > shards)
    return mismatch(manifest,
                    std::to_string(other_size) + " of " + std::to_string(shards) +
                        " shards are sound files of other sizes than in the manifest (" +
                        std::to_string(bytes) + " bytes in all, " + std::to_string(expected_bytes) +
                        " expected): this is another model or revision",
                    evidence);
  if (missing * 2 > shards && strays.shards.size() * 2 > shards)
    return mismatch(manifest,
                    std::to_string(missing) + " of the manifest's " + std::to_string(shards) +
                        " shards are not there, and " + std::to_string(strays.shards.size()) +
                        " of other names are (such as " + strays.shards.front() +
                        "): this is another model or revision",
                    evidence);
  return std::nullopt;
}

}  // namespace troika::model
