// What Hugging Face's tools write down beside a model, from its text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/model/manifest.hpp"

namespace troika::model {

// trees/COMMIT.json of the hub's cache (format_version 1): {"format_version":1,"files":{"NAME":{"size":N,
// "blob_id":"40 digits","lfs_sha256":"64 digits","lfs_size":N}}}. `revision`: 40 digits; `subject` names the
// text in errors.
Result<Manifest> parse_tree(std::string_view text, const std::string& subject, const std::string& model,
                            const std::string& revision);

// Git's ids have 40 digits, LFS objects' SHA-256 64: with the size, what proves a file. Error: neither.
Result<ManifestFile> file_of_etag(const std::string& etag, Bytes bytes, const std::string& name);

// NAME.metadata of `hf download --local-dir`: three lines, of which the third is the time of the download.
struct FetchedFile {
  std::string commit;  // 40 digits
  std::string etag;
};
Result<FetchedFile> parse_metadata(std::string_view text, const std::string& subject);

}  // namespace troika::model
