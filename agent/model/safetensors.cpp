#include "agent/model/safetensors.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "agent/model/header_reader.hpp"

namespace troika::model {
namespace {

constexpr std::array<std::pair<std::string_view, unsigned>, 22> kDtypes{{
    {"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8},     {"F8_E8M0", 8},     {"I16", 16},    {"U16", 16}, {"F16", 16},
    {"BF16", 16},   {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I32", 32},    {"U32", 32}, {"F32", 32},
    {"C64", 64},    {"F64", 64},        {"I64", 64},        {"U64", 64},
}};

std::string figure(std::uint64_t value) {
  return std::to_string(value);
}

// Checks one tensor that must begin at `start`.
std::optional<HeaderFault> check_tensor(const Tensor& tensor, std::uint64_t start) {
  const std::string offsets = "[" + figure(tensor.begin) + ", " + figure(tensor.end) + "]";
  if (tensor.begin != start || tensor.end < tensor.begin)
    return HeaderFault{"InvalidOffset", tensor.name,
                       "data_offsets " + offsets + ", byte " + figure(start) + " is next"};
  std::uint64_t bits = dtype_bits(tensor.dtype);
  if (bits == 0)
    return HeaderFault{"InvalidHeaderDeserialization", tensor.name,
                       "dtype " + tensor.dtype + " is not known"};
  for (const std::uint64_t size : tensor.shape) {
    if (__builtin_mul_overflow(bits, size, &bits))
      return HeaderFault{"ValidationOverflow", tensor.name, "its shape is beyond 64 bits"};
  }
  if (bits % 8 != 0)
    return HeaderFault{"MisalignedSlice", tensor.name,
                       figure(bits) + " bits of " + tensor.dtype + " are no whole bytes"};
  if (tensor.end - tensor.begin != bits / 8)
    return HeaderFault{"TensorInvalidInfo", tensor.name,
                       "dtype and shape need " + figure(bits / 8) + " bytes, data_offsets " + offsets +
                           " give " + figure(tensor.end - tensor.begin)};
  return std::nullopt;
}

}  // namespace

unsigned dtype_bits(std::string_view dtype) {
  const auto found =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& d) { return d.first == dtype; });
  return found == kDtypes.end() ? 0 : found->second;
}

HeaderLength header_length(std::string_view first_eight, std::uint64_t file_bytes) {
  if (first_eight.size() < 8)
    return {HeaderFault{"HeaderTooSmall", {}, figure(file_bytes) + " bytes cannot hold a header"}, 0};
  std::uint64_t length = 0;
  for (std::size_t i = 8; i > 0; --i)
    length = length << 8 | static_cast<unsigned char>(first_eight[i - 1]);
  if (length > kLargestHeader)
    return {HeaderFault{"HeaderTooLarge",
                        {},
                        "a header of " + figure(length) + " bytes; at most " + figure(kLargestHeader) +
                            " are allowed"},
            0};
  if (length > file_bytes - 8)
    return {HeaderFault{"InvalidHeaderLength",
                        {},
                        "a header of " + figure(length) + " bytes in a file of " + figure(file_bytes)},
            0};
  return {std::nullopt, length};
}

Header parse_header(std::string_view json) {
  Header header;
  header.fault = read_header_json(json, header.tensors);
  if (header.fault) return header;
  // The official reader's order: by offsets; tensors without bytes share their place with the next one.
  std::sort(header.tensors.begin(), header.tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t start = 0;
  for (const Tensor& tensor : header.tensors) {
    header.fault = check_tensor(tensor, start);
    if (header.fault) return header;
    start = tensor.end;
  }
  if (__builtin_add_overflow(8 + json.size(), start, &header.file_bytes))
    header.fault = HeaderFault{"ValidationOverflow", {}, "its data end beyond 64 bits"};
  return header;
}

}  // namespace troika::model
