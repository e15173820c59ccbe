#include "agent/model/strays.hpp"

#include <algorithm>
#include <array>

#include "platform/files.hpp"

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

Finding extra(const std::string& name) {
  return finding(Code::EXTRA_FILE, {}, name,
                 name + " is in the model directory and not in the manifest; a loader would take it",
                 "move it out of the model directory, or pin the model with --allow " + name);
}

Finding leftover(const std::string& name) {
  return finding(Code::LEFTOVER_INCOMPLETE, {}, name, name + " is left of a download that did not finish",
                 "remove it once no download is running");
}

void look_at_own(const ModelRoot& root, const Manifest& manifest, Strays& strays) {
  const auto names = platform::list_directory(root.directory);
  if (!names.ok()) {
    strays.findings.push_back(finding(Code::UNREADABLE, {}, root.directory,
                                      root.directory + " cannot be listed (" + names.error().reason +
                                          "), so that files which a loader would take besides go unseen",
                                      "let the user that runs the agent and the engine list it"));
    return;
  }
  for (const std::string& name : *names) {
    if (name.ends_with(".incomplete")) strays.findings.push_back(leftover(name));
    const bool allowed = std::binary_search(manifest.allowed.begin(), manifest.allowed.end(), name);
    if (manifest.files.count(name) != 0 || allowed || !loader_takes(name)) continue;
    if (is_shard(name)) strays.shards.push_back(name);
    strays.findings.push_back(extra(name));
  }
}

void look_at_downloads(const ModelRoot& root, Strays& strays) {
  const std::string downloads = ".cache/huggingface/download";
  const auto names = platform::list_directory(root.directory + "/" + downloads, platform::Absent::Empty);
  if (!names.ok()) {
    strays.findings.push_back(finding(Code::CANNOT_TELL, {}, downloads,
                                      downloads + " cannot be listed (" + names.error().reason +
                                          "): whether a download is unfinished is not known",
                                      "let the user that runs the agent list it"));
    return;
  }
  for (const std::string& name : *names)
    if (name.ends_with(".incomplete")) strays.findings.push_back(leftover(downloads + "/" + name));
}

}  // namespace

bool loader_takes(std::string_view name) {
  return std::any_of(kLoadedEndings.begin(), kLoadedEndings.end(),
                     [&](auto end) { return name.ends_with(end); }) ||
         std::find(kLoadedNames.begin(), kLoadedNames.end(), name) != kLoadedNames.end();
}

Strays find_strays(const ModelRoot& root, const Manifest& manifest) {
  Strays strays;
  look_at_own(root, manifest, strays);
  look_at_downloads(root, strays);
  return strays;
}

}  // namespace troika::model
