// Which of the two configuration files a text is.
#pragma once

#include <optional>
#include <string_view>

namespace troika::config {

enum class FileKind { Cluster, Agent };
std::string_view name(FileKind kind);  // "cluster", "agent"

// By the first line that is [cluster] or [node], so that a file with an error elsewhere is known too. None:
// neither.
std::optional<FileKind> guess_kind(std::string_view toml);

}  // namespace troika::config
