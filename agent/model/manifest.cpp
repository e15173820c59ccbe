#include "agent/model/manifest.hpp"

#include <algorithm>

#include "agent/model/digest.hpp"
#include "agent/model/strict_json.hpp"
#include "platform/files.hpp"

namespace troika::model {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestName = 1024;
constexpr std::size_t kMostFiles = 100'000;

bool hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Empty: good. Names become paths below the model directory.
std::string_view wrong_with_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName) return "its length is not between 1 and 1024";
  if (std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return "it holds a control character";
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return "it leads out of the model directory";
    if (slash == std::string_view::npos) return {};
    name.remove_prefix(slash + 1);
  }
}

Json json_of(const Manifest& manifest) {
  Json files = Json::object();
  for (const auto& [name, file] : manifest.files) {
    Json entry{{"bytes", file.bytes.count}};
    if (!file.sha256.empty()) entry["sha256"] = file.sha256;
    if (!file.git_sha1.empty()) entry["git_sha1"] = file.git_sha1;
    files[name] = std::move(entry);
  }
  return Json{
      {"format", 1}, {"model", manifest.model}, {"revision", manifest.revision}, {"files", std::move(files)}};
}

Error wrong(const std::string& subject, std::string reason) {
  return Error{"read the manifest", subject, std::move(reason)};
}

Result<std::string> text_field(const Json& object, const char* key, const std::string& subject) {
  const auto found = object.find(key);
  if (found == object.end()) return std::string{};
  if (!found->is_string()) return wrong(subject, std::string(key) + " must be a string");
  return found->get<std::string>();
}

Result<ManifestFile> file_of(const Json& entry, const std::string& name, const std::string& subject) {
  if (!entry.is_object()) return wrong(subject, "files." + name + " must be an object");
  const auto bytes = entry.find("bytes");
  if (bytes == entry.end() || !bytes->is_number_unsigned())
    return wrong(subject, "files." + name + ".bytes must be a whole number from 0");
  TROIKA_TRY(sha256, text_field(entry, "sha256", subject));
  TROIKA_TRY(git_sha1, text_field(entry, "git_sha1", subject));
  return ManifestFile{Bytes{bytes->get<std::uint64_t>()}, sha256, git_sha1};
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, const std::string& subject) {
  TROIKA_TRY(json, parse_json(text, "read the manifest", subject));
  if (!json.is_object()) return wrong(subject, "a JSON object is expected");
  const auto format = json.find("format");
  if (format == json.end() || *format != 1) return wrong(subject, "\"format\" must be 1");
  Manifest manifest;
  TROIKA_TRY(model, text_field(json, "model", subject));
  TROIKA_TRY(revision, text_field(json, "revision", subject));
  manifest.model = model;
  manifest.revision = revision;
  const auto files = json.find("files");
  if (files == json.end() || !files->is_object()) return wrong(subject, "\"files\" must be an object");
  for (const auto& [name, entry] : files->items()) {
    TROIKA_TRY(file, file_of(entry, name, subject));
    manifest.files.emplace(name, file);
  }
  TROIKA_CHECK(check_manifest(manifest, subject));
  return manifest;
}

Result<Manifest> read_manifest(const std::string& path) {
  TROIKA_TRY(text, platform::read_file(path, kLargestManifest));
  return parse_manifest(text, path);
}

std::string write_manifest(const Manifest& manifest) {
  return json_of(manifest).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string manifest_digest(const Manifest& manifest) {
  return sha256_hex(json_of(manifest).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Status check_manifest(const Manifest& manifest, const std::string& subject) {
  if (manifest.files.empty()) return wrong(subject, "it names no file");
  if (manifest.files.size() > kMostFiles) return wrong(subject, "it names more than 100000 files");
  for (const auto& [name, file] : manifest.files) {
    if (const auto reason = wrong_with_name(name); !reason.empty())
      return wrong(subject, "file name \"" + name + "\": " + std::string(reason));
    if (file.sha256.empty() && file.git_sha1.empty())
      return wrong(subject, name + " has neither sha256 nor git_sha1: nothing would prove it");
    if (!file.sha256.empty() && !hex(file.sha256, 64))
      return wrong(subject, name + ": sha256 must be 64 lower-case hexadecimal digits");
    if (!file.git_sha1.empty() && !hex(file.git_sha1, 40))
      return wrong(subject, name + ": git_sha1 must be 40 lower-case hexadecimal digits");
  }
  return Done{};
}

bool is_shard(std::string_view name) {
  return ends_with(name, ".safetensors");
}
bool is_index(std::string_view name) {
  return ends_with(name, ".safetensors.index.json");
}

}  // namespace troika::model
