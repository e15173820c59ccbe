#include "agent/model/strays.hpp"

#include <dirent.h>

#include <algorithm>
#include <array>
#include <memory>

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

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open{::opendir(directory.c_str()), ::closedir};
  if (!open) return names;
  while (const dirent* entry = ::readdir(open.get()))
    names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

Finding extra(const std::string& name) {
  return finding(Code::EXTRA_FILE, {}, name,
                 name + " is in the model directory and not in the manifest; a loader would take it",
                 "move it out of the model directory");
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
  for (const std::string& name : names_in(root.directory)) {
    if (name.ends_with(".incomplete")) strays.findings.push_back(leftover(name));
    if (manifest.files.count(name) != 0 || !loader_takes(name)) continue;
    if (is_shard(name)) strays.shards.push_back(name);
    strays.findings.push_back(extra(name));
  }
  const std::string downloads = ".cache/huggingface/download";
  for (const std::string& name : names_in(root.directory + "/" + downloads))
    if (name.ends_with(".incomplete")) strays.findings.push_back(leftover(downloads + "/" + name));
  return strays;
}

}  // namespace troika::model
