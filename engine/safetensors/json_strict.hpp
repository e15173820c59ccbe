// JSON for files that decide what is loaded or trusted: no duplicate keys, bounded nesting, errors with the
// offset.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "vocabulary/result.hpp"

namespace troika::safetensors {

// The error's reason names what is wrong: "not JSON, near byte 12", "key \"a\" twice in one object", nesting
// over 64, a number beyond a double. `doing`: "read", "import".
Result<nlohmann::json> parse_strict(std::string_view text, const std::string& subject,
                                    const char* doing = "read");

}  // namespace troika::safetensors
