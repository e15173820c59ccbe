#include "engine/safetensors/json_strict.hpp"

#include <set>
#include <vector>

namespace troika::safetensors {

using Json = nlohmann::json;

Result<Json> parse_strict(std::string_view text, const std::string& subject, const char* doing) {
  constexpr int kDeepest = 64;
  std::string problem;
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (!problem.empty()) return false;
    switch (event) {
      case Json::parse_event_t::object_start:
        keys.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!keys.back().insert(value.get<std::string>()).second)
          problem = "key \"" + value.get<std::string>() + "\" twice in one object";
        break;
      case Json::parse_event_t::array_start:
      case Json::parse_event_t::array_end:
      case Json::parse_event_t::value:
        break;
    }
    if (depth > kDeepest) problem = "nested deeper than " + std::to_string(kDeepest);
    return problem.empty();
  };
  // The library would take a zero byte for the end of the text, and pass over a byte order mark.
  if (text.find('\0') != std::string_view::npos) return Error{doing, subject, "not JSON: a zero byte"};
  if (text.starts_with("\xef\xbb\xbf")) return Error{doing, subject, "not JSON: a byte order mark"};
  try {
    Json parsed = Json::parse(text.begin(), text.end(), watch);
    if (!problem.empty()) return Error{doing, subject, problem};
    return parsed;
  } catch (const Json::parse_error& e) {
    return Error{doing, subject, problem.empty() ? "not JSON, near byte " + std::to_string(e.byte) : problem};
  } catch (const Json::out_of_range&) {
    return Error{doing, subject, problem.empty() ? "a number is larger than a double can hold" : problem};
  }
}

}  // namespace troika::safetensors
