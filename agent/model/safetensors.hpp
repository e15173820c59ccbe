// The header of a safetensors file by the official reader's rules, and by those that only the format's text
// demands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troika::model {

inline constexpr std::uint64_t kLargestHeader = 100'000'000;  // bytes; the official reader's figure

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  // bytes from the start of the data
  std::uint64_t end = 0;
};

// A rule that is broken, by the official reader's name where it has one.
struct HeaderFault {
  std::string rule;    // HeaderTooSmall, HeaderTooLarge, InvalidHeaderLength, InvalidHeaderUtf8,
                       // InvalidHeaderStart, InvalidHeaderDeserialization, DuplicateKey, InvalidOffset,
                       // MisalignedSlice, TensorInvalidInfo, ValidationOverflow
  std::string tensor;  // empty: no single one
  std::string detail;
};

struct Header {
  std::optional<HeaderFault> fault;  // the first; the rest is not to be used then
  std::vector<Tensor> tensors;       // by offset
  std::uint64_t file_bytes = 0;      // 8 + header + data: the size that the file must have
};

// The length that the first eight bytes give, judged against the file's size. Fault or the header's length.
struct HeaderLength {
  std::optional<HeaderFault> fault;
  std::uint64_t bytes = 0;
};
HeaderLength header_length(std::string_view first_eight, std::uint64_t file_bytes);

// `json`: the header's bytes without the length.
Header parse_header(std::string_view json);

// Bits of one element; 0: not a dtype of the format.
unsigned dtype_bits(std::string_view dtype);

}  // namespace troika::model
