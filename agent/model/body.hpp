// What a file is when it is not what it should be. Mode 4: a loader's "HeaderTooLarge" tells nobody that a
// token expired.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vocabulary/finding.hpp"

namespace troika::model {

// Enough of a file's beginning to tell.
inline constexpr std::size_t kBodyHead = 4096;

struct Body {
  Code code{};               // LFS_POINTER, HTML_BODY, JSON_BODY, XML_BODY, ZERO_FILLED
  std::string oid;           // of an LFS pointer: SHA-256 of the object that is meant
  std::uint64_t wanted = 0;  // its size; 0: not told
  std::string excerpt;       // first line of an error body, at most 120 characters
};

// `head`: the first kBodyHead bytes, or all. Nothing: none of these.
std::optional<Body> classify_body(std::string_view head);

// For files whose right content is JSON itself: only an object that says "error" at its top.
std::optional<Body> classify_json_file(std::string_view head);

// What something that is no safetensors file looks like ("a gzip stream", "text: Entry not found"); empty:
// cannot be told.
std::string look_of(std::string_view head);

// What to do about it.
std::string remedy_for(const Body& body);

}  // namespace troika::model
