// What Hugging Face's tools write down, trees/COMMIT.json and NAME.metadata: what is accepted can be used.
#include "agent/model/hub_files.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using namespace troika;

void tree(std::string_view text) {
  const std::string revision(40, 'a');
  const auto read = model::parse_tree(text, "input", "org/model", revision);
  if (!read.ok()) {
    fuzz::require(!read.error().message().empty(), "an error says something");
    return;
  }
  fuzz::require(read->model == "org/model" && read->revision == revision, "pinned by model and revision");
  fuzz::require(model::check_manifest(*read, "input").ok(), "what is accepted can be used");
  const auto again = model::parse_manifest(model::write_manifest(*read), "written");
  fuzz::require(again.ok() && *again == *read, "written and read again it is the same");
}

void metadata(std::string_view text) {
  const auto read = model::parse_metadata(text, "input");
  if (!read.ok()) return;
  fuzz::require(model::is_hex(read->commit, 40), "the commit has 40 digits");
  fuzz::require(text.starts_with(read->commit + "\n" + read->etag + "\n"), "both stand in the text");
  const auto file = model::file_of_etag(read->etag, Bytes{1}, "name");
  fuzz::require(file.ok() == (model::is_hex(read->etag, 40) || model::is_hex(read->etag, 64)),
                "an etag is a digest or refused");
  if (file.ok()) fuzz::require(file->sha256.empty() != file->git_sha1.empty(), "it is one of the two");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  tree(troika::fuzz::text_of(data, size));
  metadata(troika::fuzz::text_of(data, size));
  return 0;
}
