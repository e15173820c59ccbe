// A manifest's own form: what is accepted can be used, and is the same when written and read again.
#include "agent/model/manifest.hpp"

#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace troika;
  const auto read = model::parse_manifest(fuzz::text_of(data, size), "input");
  if (!read.ok()) {
    fuzz::require(read.error().message().find("input") != std::string::npos, "the error names the file");
    return 0;
  }
  fuzz::require(model::check_manifest(*read, "input").ok(), "what is accepted can be used");
  for (const auto& [name, file] : read->files) {
    fuzz::require(
        !name.empty() && name.front() != '/' && ("/" + name + "/").find("/../") == std::string::npos,
        "every file lies inside the directory");
    fuzz::require(!file.sha256.empty() || !file.git_sha1.empty(), "every file has a digest");
  }
  const auto again = model::parse_manifest(model::write_manifest(*read), "written");
  fuzz::require(again.ok(), "what is written can be read");
  fuzz::require(*again == *read, "and is the same");
  fuzz::require(model::manifest_digest(*again) == model::manifest_digest(*read), "of the same digest");
  return 0;
}
