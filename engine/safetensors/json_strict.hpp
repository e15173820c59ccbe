// JSON for files that decide what is loaded: no duplicate keys, bounded nesting, errors with the offset.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "vocabulary/result.hpp"

namespace troika::safetensors {

// Error: not JSON (with the byte offset), a key twice in one object, nesting over 64.
Result<nlohmann::json> parse_strict(std::string_view text, const std::string& subject);

// The whole of a regular file of at most `limit` bytes.
Result<std::string> read_text(const std::string& path, std::size_t limit);

}  // namespace troika::safetensors
