// A model's files as the engine opens them: small, regular, read whole.
#pragma once

#include <string>

#include "engine/safetensors/header.hpp"
#include "engine/safetensors/index.hpp"
#include "vocabulary/result.hpp"

namespace troika::safetensors {

// The whole of a regular file of at most `limit` bytes.
Result<std::string> read_text(const std::string& path, std::size_t limit);

// Reads only the header of the file. Error: a rule is broken (HeaderFault), or the file is longer or shorter
// than the header says.
Result<Header> read_header(const std::string& path);

// model.safetensors.index.json, or, where there is none, the tensors of model.safetensors.
Result<Index> read_index(const std::string& directory);

}  // namespace troika::safetensors
