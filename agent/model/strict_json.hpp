// JSON for files that decide what is trusted: a key twice in one object and nesting beyond a limit are
// errors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "vocabulary/result.hpp"

namespace troika::model {

// The error's reason names what is wrong: "not JSON, near byte 12", "key \"a\" twice in one object".
Result<nlohmann::json> parse_json(std::string_view text, const std::string& doing,
                                  const std::string& subject);

}  // namespace troika::model
