// The list of files that a model is made of, with what proves each: the form of docs (format 1), and its
// digest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/messages.hpp"
#include "vocabulary/result.hpp"

namespace troika::model {

using protocol::Manifest;
using protocol::ManifestFile;

inline constexpr Bytes kLargestManifest{64u << 20};  // block digests of 168 GB take 2 MB

// {"format":1,"model":"...","revision":"...","files":{"NAME":{"bytes":N,"sha256":"..."}}}; a file may have
// "git_sha1" in place of sha256, and "blocks":{"bytes":8388608,"sha256":["...",...]} besides. "allowed":
// ["NAME",...] are files that may lie in the directory besides. Other fields are left aside. `subject` names
// it in errors.
Result<Manifest> parse_manifest(std::string_view text, const std::string& subject);
Result<Manifest> read_manifest(const std::string& path);
std::string write_manifest(const Manifest& manifest);

// SHA-256 of the canonical form: write_manifest without blocks, line breaks or spaces, keys sorted. Equal for
// equal content.
std::string manifest_digest(const Manifest& manifest);

// What a manifest must keep wherever it came from: names stay inside the directory, every file has a digest
// of the right form, there is at least one file; allowed names are of the directory's own level, sorted, each
// once and none of a file.
Status check_manifest(const Manifest& manifest, const std::string& subject);

// Sets what else may lie in the directory. Error: a name that check_manifest refuses.
Status allow(Manifest& manifest, std::vector<std::string> names, const std::string& subject);

// Empty: good. Else why a file of a model cannot have this name.
std::string_view wrong_with_name(std::string_view name);

bool is_hex(std::string_view text, std::size_t digits);  // lower-case
bool is_shard(std::string_view name);                    // *.safetensors
bool is_index(std::string_view name);                    // *.safetensors.index.json

}  // namespace troika::model
