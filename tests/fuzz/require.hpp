// What must hold for every input; where it does not, the fuzzer keeps the input.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/safetensors/json_strict.hpp"

namespace troika::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

inline std::string_view text_of(const unsigned char* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The other reader of the same text: a document in memory, by a library. `comparable`: it and JsonReader mean
// the same by "strict". They differ in keys that stand twice inside what JsonReader passes over, in numbers
// that no double can hold, and by one in how deep is too deep.
struct Oracle {
  Result<nlohmann::json> document;
  bool comparable;

  explicit Oracle(std::string_view text) : document(safetensors::parse_strict(text, "input")) {
    if (document.ok()) {
      comparable = depth(*document) < 60;
    } else {
      const std::string& reason = document.error().reason;
      comparable = reason.find("twice") == std::string::npos && reason.find("number") == std::string::npos;
    }
  }

  static int depth(const nlohmann::json& value) {
    int deepest = 0;
    if (value.is_structured())
      for (const auto& inner : value)
        deepest = std::max(deepest, 1 + depth(inner));
    return deepest;
  }
};

}  // namespace troika::fuzz
