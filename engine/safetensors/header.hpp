// The header of a safetensors file by the official reader's rules, and by those that only the format's text
// demands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/safetensors/names.hpp"

namespace troika::safetensors {

inline constexpr std::uint64_t kLargestHeader = 100'000'000;  // bytes; the official reader's figure
inline constexpr std::size_t kMostDimensions = 64;            // what torch can hold

// Names and bits of one element.
// clang-format off
#define TROIKA_DTYPES(X)                                                      \
  X(BOOL, 8) X(F4, 4) X(F6_E2M3, 6) X(F6_E3M2, 6) X(U8, 8) X(I8, 8)           \
  X(F8_E5M2, 8) X(F8_E4M3, 8) X(F8_E8M0, 8) X(F8_E4M3FNUZ, 8) X(F8_E5M2FNUZ, 8) \
  X(I16, 16) X(U16, 16) X(F16, 16) X(BF16, 16) X(I32, 32) X(U32, 32)          \
  X(F32, 32) X(C64, 64) X(F64, 64) X(I64, 64) X(U64, 64)
// clang-format on

enum class Dtype : std::uint8_t {
#define TROIKA_DTYPE(name, bits) name,
  TROIKA_DTYPES(TROIKA_DTYPE)
#undef TROIKA_DTYPE
};
const char* name(Dtype dtype);
unsigned bits_of(Dtype dtype);
std::optional<Dtype> dtype_of(std::string_view name);

struct Tensor {
  std::string_view name;  // lives as long as its header
  Dtype dtype{};
  std::vector<std::uint64_t> shape;  // empty: a scalar
  std::uint64_t begin = 0;           // bytes from the start of the data
  std::uint64_t end = 0;
};

// A rule that is broken, by the official reader's name where it has one.
struct HeaderFault {
  std::string rule;    // HeaderTooSmall, HeaderTooLarge, InvalidHeaderLength, InvalidHeaderUtf8,
                       // InvalidHeaderStart, InvalidHeaderDeserialization, DuplicateKey, InvalidOffset,
                       // MisalignedSlice, TensorInvalidInfo, ValidationOverflow, TooManyDimensions
  std::string tensor;  // empty: no single one
  std::string detail;

  std::string text() const;  // all three, for people
};

struct Header {
  std::optional<HeaderFault> fault;  // the first; the rest is not to be used then
  std::vector<Tensor> tensors;       // by offset
  NameTable names;                   // of the tensors, which point into it
  std::uint64_t data_begin = 0;      // 8 + the header's length
  std::uint64_t file_bytes = 0;      // data_begin + data: the size that the file must have

  Header() = default;
  Header(Header&&) = default;
  Header& operator=(Header&&) = default;
};

// The length that the first eight bytes give, judged against the file's size. Fault or the header's length.
struct HeaderLength {
  std::optional<HeaderFault> fault;
  std::uint64_t bytes = 0;
};
HeaderLength header_length(std::string_view first_eight, std::uint64_t file_bytes);

// `json`: the header's bytes without the length.
Header parse_header(std::string_view json);

}  // namespace troika::safetensors
