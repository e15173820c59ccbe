#include "agent/model/hub_files.hpp"

#include <optional>

#include "engine/safetensors/json_strict.hpp"

namespace troika::model {
namespace {

using Json = nlohmann::json;

std::optional<std::string> text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}
std::optional<Bytes> size_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return Bytes{found->get<std::uint64_t>()};
}

Result<ManifestFile> file_of_tree(const Json& entry, const std::string& name, const std::string& subject) {
  const auto wrong = [&](const char* what) { return Error{"import", subject, "files." + name + what}; };
  if (!entry.is_object()) return wrong(" must be an object");
  const auto size = size_of(entry, "size");
  if (const auto sha256 = text_of(entry, "lfs_sha256")) {
    const auto lfs_size = size_of(entry, "lfs_size");
    if (!lfs_size && !size) return wrong(" has no size");
    return file_of_etag(*sha256, lfs_size ? *lfs_size : *size, name);
  }
  const auto blob = text_of(entry, "blob_id");
  if (!blob) return wrong(" has neither lfs_sha256 nor blob_id");
  if (!size) return wrong(" has no size");
  return file_of_etag(*blob, *size, name);
}

}  // namespace

Result<ManifestFile> file_of_etag(const std::string& etag, Bytes bytes, const std::string& name) {
  if (is_hex(etag, 64)) return ManifestFile{bytes, etag, ""};
  if (is_hex(etag, 40)) return ManifestFile{bytes, "", etag};
  return Error{"take the digest of", name, "\"" + etag.substr(0, 80) + "\" is neither SHA-256 nor a Git id"};
}

Result<Manifest> parse_tree(std::string_view text, const std::string& subject, const std::string& model,
                            const std::string& revision) {
  TROIKA_TRY(json, safetensors::parse_strict(text, subject, "import"));
  if (!json.is_object() || json.value("format_version", Json()) != 1)
    return Error{"import", subject, "a tree of format_version 1 is expected"};
  const auto files = json.find("files");
  if (files == json.end() || !files->is_object())
    return Error{"import", subject, "\"files\" must be an object"};
  Manifest manifest;
  manifest.model = model;
  manifest.revision = revision;
  for (const auto& [name, entry] : files->items()) {
    TROIKA_TRY(file, file_of_tree(entry, name, subject));
    manifest.files.emplace(name, std::move(file));
  }
  TROIKA_CHECK(check_manifest(manifest, subject));
  return manifest;
}

Result<FetchedFile> parse_metadata(std::string_view text, const std::string& subject) {
  const auto first = text.find('\n');
  const auto second = first == std::string_view::npos ? first : text.find('\n', first + 1);
  if (second == std::string_view::npos) return Error{"read", subject, "three lines are expected"};
  FetchedFile out{std::string(text.substr(0, first)),
                  std::string(text.substr(first + 1, second - first - 1))};
  if (!is_hex(out.commit, 40)) return Error{"read", subject, "its first line is not a commit of 40 digits"};
  return out;
}

}  // namespace troika::model
