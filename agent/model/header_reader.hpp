// The JSON of a safetensors header, read in one pass without a document in memory (headers may have 100 MB).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "agent/model/safetensors.hpp"

namespace troika::model {

// Fills `tensors` in the order of the text. Fault: not UTF-8, not starting with '{', not JSON, a key twice, a
// field missing or of another type, anything but spaces after the end.
std::optional<HeaderFault> read_header_json(std::string_view json, std::vector<Tensor>& tensors);

}  // namespace troika::model
