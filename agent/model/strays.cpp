#include "agent/model/strays.hpp"

#include <dirent.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

namespace troika::model {
namespace {

constexpr std::array<std::string_view, 9> kLoadedEndings{
    ".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth", ".ckpt", ".gguf",
    ".py"};
// Read by name where present; a stray one changes prompts, tokens or settings.
constexpr std::array<std::string_view, 16> kLoadedNames{
    "config.json",         "generation_config.json",  "tokenizer.json",       "tokenizer_config.json",
    "tokenizer.model",     "special_tokens_map.json", "added_tokens.json",    "vocab.json",
    "merges.txt",          "chat_template.json",      "chat_template.jinja",  "preprocessor_config.json",
    "adapter_config.json", "hf_quant_config.json",    "quantize_config.json", "params.json"};

struct Listing {
  std::vector<std::string> names;
  int error = 0;  // errno; 0: all names are there
};

Listing list_directory(const std::string& directory) {
  Listing listing;
  const std::unique_ptr<DIR, int (*)(DIR*)> open{::opendir(directory.c_str()), ::closedir};
  if (!open) {
    listing.error = errno;
    return listing;
  }
  errno = 0;
  while (const dirent* entry = ::readdir(open.get()))
    listing.names.emplace_back(entry->d_name);
  listing.error = errno;
  std::sort(listing.names.begin(), listing.names.end());
  return listing;
}

Finding extra(const std::string& name) {
  return finding(Code::EXTRA_FILE, {}, name,
                 name + " is in the model directory and not in the manifest; a loader would take it",
                 "move it out of the model directory, or pin the model with --allow " + name);
}

Finding leftover(const std::string& name) {
  return finding(Code::LEFTOVER_INCOMPLETE, {}, name, name + " is left of a download that did not finish",
                 "remove it once no download is running");
}

}  // namespace

bool loader_takes(std::string_view name) {
  return std::any_of(kLoadedEndings.begin(), kLoadedEndings.end(),
                     [&](auto end) { return name.ends_with(end); }) ||
         std::find(kLoadedNames.begin(), kLoadedNames.end(), name) != kLoadedNames.end();
}

Strays find_strays(const ModelRoot& root, const Manifest& manifest) {
  Strays strays;
  const auto allowed = [&](const std::string& name) {
    return std::binary_search(manifest.allowed.begin(), manifest.allowed.end(), name);
  };
  const Listing own = list_directory(root.directory);
  if (own.error != 0)
    strays.findings.push_back(finding(Code::UNREADABLE, {}, root.directory,
                                      root.directory + " cannot be listed (" +
                                          std::generic_category().message(own.error) +
                                          "), so that files which a loader would take besides go unseen",
                                      "let the user that runs the agent and the engine list it"));
  for (const std::string& name : own.names) {
    if (name.ends_with(".incomplete")) strays.findings.push_back(leftover(name));
    if (manifest.files.count(name) != 0 || allowed(name) || !loader_takes(name)) continue;
    if (is_shard(name)) strays.shards.push_back(name);
    strays.findings.push_back(extra(name));
  }
  const std::string downloads = ".cache/huggingface/download";
  const Listing fetched = list_directory(root.directory + "/" + downloads);
  if (fetched.error != 0 && fetched.error != ENOENT && fetched.error != ENOTDIR)
    strays.findings.push_back(finding(Code::CANNOT_TELL, {}, downloads,
                                      downloads + " cannot be listed (" +
                                          std::generic_category().message(fetched.error) +
                                          "): whether a download is unfinished is not known",
                                      "let the user that runs the agent list it"));
  for (const std::string& name : fetched.names)
    if (name.ends_with(".incomplete")) strays.findings.push_back(leftover(downloads + "/" + name));
  return strays;
}

}  // namespace troika::model
