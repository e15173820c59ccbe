#include "daemon/cluster/manifest_message.hpp"

#include <utility>

#include "agent/model/manifest.hpp"
#include "protocol/codec.hpp"

namespace troika::daemon {
namespace {

// What a message has beside its manifest: names and numbers.
constexpr std::size_t kRestOfMessage = 4096;

bool fits(const protocol::Manifest& manifest) {
  return protocol::encode(manifest, 0).size() + kRestOfMessage <= protocol::kMaxMessage.count;
}

}  // namespace

std::variant<protocol::Manifest, Finding> manifest_for_agents(const std::string& path) {
  auto manifest = model::read_manifest(path);
  if (!manifest.ok())
    return finding(Code::MANIFEST_INVALID, {}, path, manifest.error().message(),
                   "Correct [model] manifest in cluster.toml, or make one with troika manifest create.");
  // Digests of blocks prove nothing more, and they are most of a large model's manifest.
  if (!fits(*manifest))
    for (auto& [name, file] : manifest->files) {
      file.block_bytes = Bytes{};
      file.blocks.clear();
    }
  if (!fits(*manifest))
    return finding(Code::MANIFEST_INVALID, {}, path, path + " is larger than a message to an agent may be",
                   "Name fewer files in it.");
  return std::move(manifest).value();
}

}  // namespace troika::daemon
