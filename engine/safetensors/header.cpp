#include "engine/safetensors/header.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "engine/safetensors/json_reader.hpp"

namespace troika::safetensors {
namespace {

struct DtypeFacts {
  const char* name;
  unsigned bits;
};
constexpr std::array kDtypes{
#define TROIKA_DTYPE(name, bits) DtypeFacts{#name, bits},
    TROIKA_DTYPES(TROIKA_DTYPE)
#undef TROIKA_DTYPE
};

std::string figure(std::uint64_t value) {
  return std::to_string(value);
}

HeaderFault malformed(std::string tensor, std::string detail) {
  return {"InvalidHeaderDeserialization", std::move(tensor), std::move(detail)};
}

// The text of a header, into tensors in the text's order.
class HeaderText {
  using Kind = JsonReader::Kind;

 public:
  HeaderText(std::string_view json, Header& header) : in_(json), header_(header) {}

  std::optional<HeaderFault> read() {
    if (!in_.enter(Kind::Object)) return malformed({}, in_.problem());
    bool metadata = false;
    std::string_view key;
    while (in_.member(key)) {
      tensor_.clear();
      if (key == "__metadata__") {
        if (metadata) return twice(key);
        metadata = true;
        if (!read_metadata()) return fault_;
        continue;
      }
      tensor_ = key;
      const auto [id, fresh] = header_.names.insert(key);
      if (!fresh) return twice(key);
      if (in_.next() != Kind::Object) return other_than("the tensor", in_.next(), Kind::Object);
      if (!read_tensor(header_.names.name(id))) return fault_;
    }
    tensor_.clear();
    if (!in_.end()) return malformed({}, in_.problem());
    return std::nullopt;
  }

 private:
  std::optional<HeaderFault> twice(std::string_view key) const {
    return HeaderFault{"DuplicateKey", tensor_.empty() ? std::string(key) : tensor_,
                       "\"" + std::string(key) + "\" stands twice"};
  }
  std::optional<HeaderFault> other_than(const std::string& what, Kind found, Kind wanted) const {
    if (found == Kind::Nothing)
      return malformed(tensor_, in_.failed() ? in_.problem() : "the header ends here");
    return malformed(
        tensor_, what + " is " + JsonReader::text(found) + ", " + JsonReader::text(wanted) + " is expected");
  }

  bool read_metadata() {
    if (in_.next() != Kind::Object) return wrong(other_than("__metadata__", in_.next(), Kind::Object));
    if (!in_.enter(Kind::Object)) return broken();
    NameTable keys;
    std::string_view key, value;
    while (in_.member(key)) {
      const auto [id, fresh] = keys.insert(key);
      if (!fresh) return wrong(twice(key));
      if (in_.next() != Kind::String)
        return wrong(other_than("__metadata__." + std::string(keys.name(id)), in_.next(), Kind::String));
      if (!in_.string(value)) return broken();
    }
    return !in_.failed() || broken();
  }

  bool read_tensor(std::string_view name) {
    Tensor& tensor = header_.tensors.emplace_back();
    tensor.name = name;
    if (!in_.enter(Kind::Object)) return broken();
    bool dtype = false, shape = false, offsets = false;
    std::string_view key;
    while (in_.member(key)) {
      if (key == "dtype") {
        if (std::exchange(dtype, true)) return wrong(twice(key));
        if (!read_dtype(tensor)) return false;
      } else if (key == "shape") {
        if (std::exchange(shape, true)) return wrong(twice(key));
        if (!read_shape(tensor)) return false;
      } else if (key == "data_offsets") {
        if (std::exchange(offsets, true)) return wrong(twice(key));
        if (!read_offsets(tensor)) return false;
      } else if (!in_.skip()) {  // of a later version of the format, as the official reader does
        return broken();
      }
    }
    if (in_.failed()) return broken();
    for (const auto& [there, field] :
         {std::pair{dtype, "dtype"}, {shape, "shape"}, {offsets, "data_offsets"}})
      if (!there) return wrong(malformed(tensor_, std::string(field) + " is missing"));
    return true;
  }

  bool read_dtype(Tensor& tensor) {
    std::string_view value;
    if (in_.next() != Kind::String) return wrong(other_than("dtype", in_.next(), Kind::String));
    if (!in_.string(value)) return broken();
    const auto known = dtype_of(value);
    if (!known) return wrong(malformed(tensor_, "dtype " + std::string(value) + " is not known"));
    tensor.dtype = *known;
    return true;
  }

  bool read_shape(Tensor& tensor) {
    if (in_.next() != Kind::Array) return wrong(other_than("shape", in_.next(), Kind::Array));
    if (!in_.enter(Kind::Array)) return broken();
    shape_.clear();
    while (in_.element()) {
      if (in_.next() != Kind::Unsigned)
        return wrong(other_than("a dimension of shape", in_.next(), Kind::Unsigned));
      if (shape_.size() == kMostDimensions)
        return wrong(HeaderFault{"TooManyDimensions", tensor_, "more than " + figure(kMostDimensions)});
      if (!in_.number(shape_.emplace_back())) return broken();
    }
    tensor.shape = shape_;
    return !in_.failed() || broken();
  }

  bool read_offsets(Tensor& tensor) {
    if (in_.next() != Kind::Array) return wrong(other_than("data_offsets", in_.next(), Kind::Array));
    if (!in_.enter(Kind::Array)) return broken();
    std::size_t count = 0;
    while (in_.element()) {
      if (in_.next() != Kind::Unsigned) return wrong(other_than("an offset", in_.next(), Kind::Unsigned));
      if (count == 2) return wrong(malformed(tensor_, "data_offsets must hold two numbers"));
      if (!in_.number(count == 0 ? tensor.begin : tensor.end)) return broken();
      ++count;
    }
    if (in_.failed()) return broken();
    return count == 2 || wrong(malformed(tensor_, "data_offsets must hold two numbers"));
  }

  bool wrong(std::optional<HeaderFault> fault) {
    fault_ = std::move(fault);
    return false;
  }
  bool broken() { return wrong(malformed(tensor_, in_.problem())); }

  JsonReader in_;
  Header& header_;
  std::string tensor_;                // being read; empty: none
  std::vector<std::uint64_t> shape_;  // the last one read
  std::optional<HeaderFault> fault_;
};

// Checks one tensor that must begin at `start`.
std::optional<HeaderFault> check_tensor(const Tensor& tensor, std::uint64_t start) {
  const auto fault = [&](const char* rule, const std::string& detail) {
    return HeaderFault{rule, std::string(tensor.name), detail};
  };
  const auto offsets = [&] { return "[" + figure(tensor.begin) + ", " + figure(tensor.end) + "]"; };
  if (tensor.begin != start || tensor.end < tensor.begin)
    return fault("InvalidOffset", "data_offsets " + offsets() + ", byte " + figure(start) + " is next");
  std::uint64_t bits = bits_of(tensor.dtype);
  for (const std::uint64_t size : tensor.shape) {
    if (__builtin_mul_overflow(bits, size, &bits))
      return fault("ValidationOverflow", "its shape is beyond 64 bits");
  }
  if (bits % 8 != 0)
    return fault("MisalignedSlice", figure(bits) + " bits of " + name(tensor.dtype) + " are no whole bytes");
  if (tensor.end - tensor.begin != bits / 8)
    return fault("TensorInvalidInfo", "dtype and shape need " + figure(bits / 8) + " bytes, data_offsets " +
                                          offsets() + " give " + figure(tensor.end - tensor.begin));
  return std::nullopt;
}

std::optional<HeaderFault> check_bytes(std::string_view json) {
  if (json.empty()) return malformed({}, "the header is empty");
  if (json.front() != '{') return HeaderFault{"InvalidHeaderStart", {}, "the header does not start with '{'"};
  const std::size_t last = json.find_last_not_of(' ');
  if (json[last] != '}') return malformed({}, "the header does not end with '}' and spaces");
  if (const auto bad = find_bad_utf8(json))
    return HeaderFault{"InvalidHeaderUtf8", {}, "not UTF-8, near byte " + figure(*bad)};
  return std::nullopt;
}

}  // namespace

const char* name(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].name;
}

unsigned bits_of(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].bits;
}

std::optional<Dtype> dtype_of(std::string_view name) {
  for (std::size_t i = 0; i < kDtypes.size(); ++i)
    if (name == kDtypes[i].name) return static_cast<Dtype>(i);
  return std::nullopt;
}

std::string HeaderFault::text() const {
  return rule + ": " + (tensor.empty() ? "" : "tensor " + tensor + ": ") + detail;
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
  header.fault = check_bytes(json);
  if (!header.fault) header.fault = HeaderText{json, header}.read();
  if (header.fault) return header;
  // The official reader's order: by offsets; tensors without bytes share their place with the next one.
  const auto before = [](const Tensor& a, const Tensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  };
  if (!std::is_sorted(header.tensors.begin(), header.tensors.end(), before))
    std::sort(header.tensors.begin(), header.tensors.end(), before);
  std::uint64_t start = 0;
  for (const Tensor& tensor : header.tensors) {
    header.fault = check_tensor(tensor, start);
    if (header.fault) return header;
    start = tensor.end;
  }
  header.data_begin = 8 + json.size();
  if (__builtin_add_overflow(header.data_begin, start, &header.file_bytes))
    header.fault = HeaderFault{"ValidationOverflow", {}, "its data end beyond 64 bits"};
  return header;
}

}  // namespace troika::safetensors
