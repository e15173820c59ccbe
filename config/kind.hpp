// Which of the two configuration files a text is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/problem.hpp"

namespace troika::config {

enum class FileKind { Cluster, Agent };
std::string_view name(FileKind kind);  // "cluster", "agent"

// By the first line that is [cluster] or [node], so that a file with an error elsewhere is known too. None:
// neither.
std::optional<FileKind> guess_kind(std::string_view toml);

// The kind, or why it cannot be told: the text is not TOML, or has the tables of neither file.
Loaded<FileKind> tell_kind(std::string_view toml, const std::string& path);

}  // namespace troika::config
