// Writing safetensors files.
#pragma once

#include <string>
#include <vector>

#include "kernels/cpu/kernels.hpp"
#include "vocabulary/result.hpp"

namespace troika::maker {

struct OutTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<kernels::Bf16> values;  // dtype BF16, or
  std::vector<float> wide_values;     // dtype F32, if not empty
};

Status write_file(const std::string& path, std::string_view content);
// The header is padded with spaces to a multiple of eight bytes. Returns the bytes of the file.
Result<std::uint64_t> write_shard(const std::string& path, const std::vector<OutTensor>& tensors);

}  // namespace troika::maker
