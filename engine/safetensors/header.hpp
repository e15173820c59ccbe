// The header of a safetensors file, read by the rules of the official library.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary/result.hpp"

namespace troika::safetensors {

// Figure of the official library: a header is at most 100 MB.
inline constexpr std::uint64_t kLongestHeader = 100'000'000;

struct Tensor {
  std::string dtype;                 // "BF16", "F32", ...
  std::vector<std::uint64_t> shape;  // empty: a scalar
  std::uint64_t begin = 0;           // bytes from the start of the file
  std::uint64_t end = 0;
};

struct Header {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  // 8 + length of the JSON
};

// Bits of one element; 0 for an unknown dtype.
unsigned bits_of(std::string_view dtype);

// `json` is the header's text, `file_bytes` the size of the whole file. Refused: not an object that starts
// with '{', duplicate keys, unknown fields or dtypes, sizes that do not match dtype and shape, holes,
// overlaps, a file that is shorter or longer than the header says.
Result<Header> parse_header(std::string_view json, std::uint64_t file_bytes, const std::string& subject);

// Reads only the header of the file.
Result<Header> read_header(const std::string& path);

// Where each tensor of a model lies.
struct Index {
  std::map<std::string, std::string> shard_of;  // tensor name -> file name in the model's directory
  std::uint64_t total_bytes = 0;                // metadata.total_size; 0 where there is none
};

// model.safetensors.index.json, or, where there is none, model.safetensors. Refused: a shard name with a path
// in it.
Result<Index> read_index(const std::string& directory);

}  // namespace troika::safetensors
