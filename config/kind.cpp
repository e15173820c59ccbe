#include "config/kind.hpp"

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
  while (!toml.empty()) {
    const std::size_t end = toml.find('\n');
    const std::string_view line = trimmed(toml.substr(0, end));
    if (line == "[cluster]") return FileKind::Cluster;
    if (line == "[node]") return FileKind::Agent;
    toml.remove_prefix(end == std::string_view::npos ? toml.size() : end + 1);
  }
  return std::nullopt;
}

}  // namespace troika::config
