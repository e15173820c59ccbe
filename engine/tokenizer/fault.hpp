// Why a tokenizer.json cannot be used.
#pragma once

#include <string>
#include <utility>

#include "vocabulary/result.hpp"

namespace troika::tokenizer {

// `what` is the part of the file, as "model.merges[3]".
inline Error fault(const std::string& what, std::string reason) {
  return Error{"use the tokenizer's", what, std::move(reason)};
}

}  // namespace troika::tokenizer
