#include "agent/model/manifest.hpp"

#include <algorithm>

#include "agent/model/digest.hpp"
#include "engine/safetensors/json_strict.hpp"
#include "platform/files.hpp"

namespace troika::model {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestName = 1024;
constexpr std::size_t kMostFiles = 100'000;
constexpr std::uint64_t kLargestModel = std::uint64_t{1} << 60;  // bytes: sums of sizes cannot overflow
constexpr std::uint64_t kSmallestBlock = 65'536;

bool utf8(std::string_view text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

Json json_of(const Manifest& manifest, bool with_blocks) {
  Json files = Json::object();
  for (const auto& [name, file] : manifest.files) {
    Json entry{{"bytes", file.bytes.count}};
    if (!file.sha256.empty()) entry["sha256"] = file.sha256;
    if (!file.git_sha1.empty()) entry["git_sha1"] = file.git_sha1;
    if (with_blocks && !file.blocks.empty())
      entry["blocks"] = Json{{"bytes", file.block_bytes.count}, {"sha256", file.blocks}};
    files[name] = std::move(entry);
  }
  Json json{
      {"format", 1}, {"model", manifest.model}, {"revision", manifest.revision}, {"files", std::move(files)}};
  if (!manifest.allowed.empty()) json["allowed"] = manifest.allowed;
  return json;
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

// "blocks": {"bytes": 8388608, "sha256": ["...", ...]}; may be missing.
Status read_blocks(const Json& entry, const std::string& name, const std::string& subject,
                   ManifestFile& file) {
  const auto blocks = entry.find("blocks");
  if (blocks == entry.end()) return Done{};
  const auto bad = [&](const std::string& what) {
    return wrong(subject, "files." + name + ".blocks" + what);
  };
  if (!blocks->is_object()) return bad(" must be an object");
  const auto bytes = blocks->find("bytes");
  if (bytes == blocks->end() || !bytes->is_number_unsigned()) return bad(".bytes must be a whole number");
  const auto digests = blocks->find("sha256");
  if (digests == blocks->end() || !digests->is_array()) return bad(".sha256 must be a list");
  file.block_bytes = Bytes{bytes->get<std::uint64_t>()};
  for (const Json& digest : *digests) {
    if (!digest.is_string()) return bad(".sha256 must hold strings");
    file.blocks.push_back(digest.get<std::string>());
  }
  return Done{};
}

Result<ManifestFile> file_of(const Json& entry, const std::string& name, const std::string& subject) {
  if (!entry.is_object()) return wrong(subject, "files." + name + " must be an object");
  const auto bytes = entry.find("bytes");
  if (bytes == entry.end() || !bytes->is_number_unsigned())
    return wrong(subject, "files." + name + ".bytes must be a whole number from 0");
  TROIKA_TRY(sha256, text_field(entry, "sha256", subject));
  TROIKA_TRY(git_sha1, text_field(entry, "git_sha1", subject));
  ManifestFile file{Bytes{bytes->get<std::uint64_t>()}, sha256, git_sha1, Bytes{}, {}};
  TROIKA_CHECK(read_blocks(entry, name, subject, file));
  return file;
}

// "allowed": ["NAME", ...]; may be missing.
Result<std::vector<std::string>> read_allowed(const Json& json, const std::string& subject) {
  std::vector<std::string> names;
  const auto allowed = json.find("allowed");
  if (allowed == json.end()) return names;
  if (!allowed->is_array()) return wrong(subject, "\"allowed\" must be a list of file names");
  for (const Json& name : *allowed) {
    if (!name.is_string()) return wrong(subject, "\"allowed\" must hold strings");
    names.push_back(name.get<std::string>());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status check_allowed(const Manifest& manifest, const std::string& subject) {
  const auto bad = [&](const std::string& name, std::string_view reason) {
    return wrong(subject, "allowed \"" + name + "\": " + std::string(reason));
  };
  if (manifest.allowed.size() > kMostFiles) return wrong(subject, "it allows more than 100000 files");
  const std::string* before = nullptr;
  for (const std::string& name : manifest.allowed) {
    if (const auto reason = wrong_with_name(name); !reason.empty()) return bad(name, reason);
    if (name.find('/') != std::string::npos) return bad(name, "only files of the directory itself matter");
    if (manifest.files.count(name) != 0) return bad(name, "it is one of the model's own files");
    if (before != nullptr && !(*before < name)) return bad(name, "it is there twice, or not in order");
    before = &name;
  }
  return Done{};
}

Status check_blocks(const std::string& name, const ManifestFile& file, const std::string& subject) {
  if (file.blocks.empty() && file.block_bytes.count == 0) return Done{};
  const std::uint64_t size = file.block_bytes.count;
  if (size < kSmallestBlock || file.blocks.size() != (file.bytes.count + size - 1) / size)
    return wrong(subject, name + ": blocks must be of 65536 bytes or more and cover the file");
  for (const std::string& digest : file.blocks)
    if (!is_hex(digest, 64))
      return wrong(subject, name + ": digests of blocks must be 64 lower-case hexadecimal digits");
  return Done{};
}

}  // namespace

// Names become paths below the model directory.
std::string_view wrong_with_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName) return "its length is not between 1 and 1024";
  if (std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return "it holds a control character";
  if (!utf8(name)) return "it is not UTF-8";
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return "it leads out of the model directory";
    if (slash == std::string_view::npos) return {};
    name.remove_prefix(slash + 1);
  }
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& subject) {
  TROIKA_TRY(json, safetensors::parse_strict(text, subject, "read the manifest"));
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
  TROIKA_TRY(allowed, read_allowed(json, subject));
  manifest.allowed = allowed;
  TROIKA_CHECK(check_manifest(manifest, subject));
  return manifest;
}

Result<Manifest> read_manifest(const std::string& path) {
  TROIKA_TRY(text, platform::read_file(path, kLargestManifest));
  return parse_manifest(text, path);
}

std::string write_manifest(const Manifest& manifest) {
  return json_of(manifest, true).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string manifest_digest(const Manifest& manifest) {
  return sha256_hex(json_of(manifest, false).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Status check_manifest(const Manifest& manifest, const std::string& subject) {
  if (manifest.files.empty()) return wrong(subject, "it names no file");
  if (manifest.files.size() > kMostFiles) return wrong(subject, "it names more than 100000 files");
  Bytes total;
  for (const auto& [name, file] : manifest.files) {
    if (file.bytes.count > kLargestModel - total.count)
      return wrong(subject, name + ": with its " + std::to_string(file.bytes.count) +
                                " bytes the model is larger than 2^60 bytes");
    total += file.bytes;
    if (const auto reason = wrong_with_name(name); !reason.empty())
      return wrong(subject, "file name \"" + name + "\": " + std::string(reason));
    if (file.sha256.empty() && file.git_sha1.empty())
      return wrong(subject, name + " has neither sha256 nor git_sha1: nothing would prove it");
    if (!file.sha256.empty() && !is_hex(file.sha256, 64))
      return wrong(subject, name + ": sha256 must be 64 lower-case hexadecimal digits");
    if (!file.git_sha1.empty() && !is_hex(file.git_sha1, 40))
      return wrong(subject, name + ": git_sha1 must be 40 lower-case hexadecimal digits");
    TROIKA_CHECK(check_blocks(name, file, subject));
  }
  return check_allowed(manifest, subject);
}

Status allow(Manifest& manifest, std::vector<std::string> names, const std::string& subject) {
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    if (name.find_first_of("*?") != std::string::npos)
      return Error{"allow \"" + name + "\" in", subject, "patterns are not known: name each file"};
  manifest.allowed = std::move(names);
  const Status good = check_allowed(manifest, subject);
  return good.ok() ? good : Status{Error{"allow files in", subject, good.error().reason}};
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_shard(std::string_view name) {
  return name.ends_with(".safetensors");
}
bool is_index(std::string_view name) {
  return name.ends_with(".safetensors.index.json");
}

}  // namespace troika::model
