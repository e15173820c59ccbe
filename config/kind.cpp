#include "config/kind.hpp"

#include "config/document.hpp"
#include "vocabulary/result.hpp"

namespace troika::config {
namespace {

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  line = line.substr(0, line.find('#'));
  const std::size_t last = line.find_last_not_of(kBlank);
  return last == std::string_view::npos ? std::string_view{} : line.substr(0, last + 1);
}

}  // namespace

std::string_view name(FileKind kind) {
  switch (kind) {
    case FileKind::Cluster:
      return "cluster";
    case FileKind::Agent:
      return "agent";
  }
  broken_invariant("file kind", __FILE__, __LINE__);
}

std::optional<FileKind> guess_kind(std::string_view toml) {
  toml = without_mark(toml);
  while (!toml.empty()) {
    const std::size_t end = toml.find('\n');
    const std::string_view line = trimmed(toml.substr(0, end));
    if (line == "[cluster]") return FileKind::Cluster;
    if (line == "[node]") return FileKind::Agent;
    toml.remove_prefix(end == std::string_view::npos ? toml.size() : end + 1);
  }
  return std::nullopt;
}

Loaded<FileKind> tell_kind(std::string_view toml, const std::string& path) {
  if (const auto guessed = guess_kind(toml)) return {guessed, {}};
  const Document document(toml, path);
  if (!document.parsed()) return {std::nullopt, document.problems()};
  // Dotted and inline tables, which no line tells.
  const auto table = [&](std::string_view key) {
    const toml::node* const node = document.root().get(key);
    return node != nullptr && node->is_table();
  };
  if (table("cluster")) return {FileKind::Cluster, {}};
  if (table("node")) return {FileKind::Agent, {}};
  return {std::nullopt,
          {Problem{path, 0, 0, "", "",
                   "a table [cluster] (of a leader's file) or [node] (of an agent's) is expected; --kind "
                   "cluster or --kind agent says which is meant",
                   ""}}};
}

}  // namespace troika::config
