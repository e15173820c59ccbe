#include "engine/safetensors/header.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "engine/safetensors/json_strict.hpp"

namespace troika::safetensors {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestIndex = 256U << 20U;  // the index of the largest known model is below 20 MB

Error fault(const std::string& subject, std::string reason) {
  return Error{"read the safetensors header of", subject, std::move(reason)};
}

std::optional<std::uint64_t> times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Offsets of the result are still relative to the data.
Result<Tensor> parse_tensor(const std::string& name, const json& entry, const std::string& subject) {
  if (!entry.is_object()) return fault(subject, name + " is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return fault(subject, name + " has an unknown field " + key);
    }
  }
  if (!entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets")) {
    return fault(subject, name + " lacks one of dtype, shape, data_offsets");
  }
  Tensor tensor;
  if (!entry["dtype"].is_string()) return fault(subject, name + ": dtype is not a string");
  tensor.dtype = entry["dtype"].get<std::string>();
  const unsigned bits = bits_of(tensor.dtype);
  if (bits == 0) return fault(subject, name + ": unknown dtype " + tensor.dtype);
  if (!entry["shape"].is_array()) return fault(subject, name + ": shape is not a list");
  std::uint64_t elements = 1;
  for (const auto& extent : entry["shape"]) {
    if (!extent.is_number_unsigned())
      return fault(subject, name + ": shape holds something else than whole numbers");
    tensor.shape.push_back(extent.get<std::uint64_t>());
    const auto product = times(elements, tensor.shape.back());
    if (!product) return fault(subject, name + ": shape overflows");
    elements = *product;
  }
  const auto& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return fault(subject, name + ": data_offsets is not [begin, end]");
  }
  tensor.begin = offsets[0].get<std::uint64_t>();
  tensor.end = offsets[1].get<std::uint64_t>();
  const auto total_bits = times(elements, bits);
  if (!total_bits || *total_bits % 8 != 0)
    return fault(subject, name + ": shape overflows or is no whole number of bytes");
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != *total_bits / 8) {
    return fault(subject, name + ": data_offsets do not match dtype and shape");
  }
  return tensor;
}

Status check_layout(const Header& header, std::uint64_t data_bytes, const std::string& subject) {
  std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, const std::string*>> spans;
  for (const auto& [name, tensor] : header.tensors)
    spans.push_back({{tensor.begin, tensor.end}, &name});
  std::sort(spans.begin(), spans.end());
  std::uint64_t expected = 0;
  for (const auto& [span, name] : spans) {
    if (span.first != expected) {
      return fault(subject,
                   *name + (span.first > expected ? ": hole before it" : ": overlaps the tensor before it"));
    }
    expected = span.second;
  }
  if (expected != data_bytes) {
    return fault(subject, "the tensors end at " + std::to_string(header.data_begin + expected) +
                              " but the file at " + std::to_string(header.data_begin + data_bytes) +
                              " bytes");
  }
  return Done{};
}

}  // namespace

unsigned bits_of(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, unsigned>, 21> kBits{
      {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
       {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
       {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
       {"C64", 64},    {"F64", 64},    {"I64", 64}}};
  for (const auto& [name, bits] : kBits) {
    if (name == dtype) return bits;
  }
  return dtype == "U64" ? 64 : 0;
}

Result<Header> parse_header(std::string_view text, std::uint64_t file_bytes, const std::string& subject) {
  if (text.size() > kLongestHeader) return fault(subject, "longer than 100000000 bytes");
  if (text.empty() || text.front() != '{') return fault(subject, "does not start with '{'");
  if (file_bytes < 8 + text.size()) return fault(subject, "longer than the file");
  TROIKA_TRY(document, parse_strict(text, subject));
  if (!document.is_object()) return fault(subject, "not an object");
  Header header;
  header.data_begin = 8 + text.size();
  for (const auto& [name, entry] : document.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return fault(subject, "__metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return fault(subject, "__metadata__." + key + " is not a string");
        header.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    TROIKA_TRY(tensor, parse_tensor(name, entry, subject));
    header.tensors.emplace(name, std::move(tensor));
  }
  TROIKA_CHECK(check_layout(header, file_bytes - header.data_begin, subject));
  for (auto& [name, tensor] : header.tensors) {
    tensor.begin += header.data_begin;
    tensor.end += header.data_begin;
  }
  return header;
}

Result<Header> read_header(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error("open", path, errno);
  const auto read = [&]() -> Result<Header> {
    struct stat status {};
    if (::fstat(fd, &status) != 0) return system_error("read", path, errno);
    if (!S_ISREG(status.st_mode)) return fault(path, "not a regular file");
    const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
    std::array<unsigned char, 8> prefix{};
    if (file_bytes < 8 || ::pread(fd, prefix.data(), 8, 0) != 8)
      return fault(path, "the file is shorter than 8 bytes");
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < 8; ++i)
      length |= static_cast<std::uint64_t>(prefix[i]) << (8 * i);
    if (length > kLongestHeader) return fault(path, "longer than 100000000 bytes");
    if (length > file_bytes - 8) return fault(path, "longer than the file");
    std::string text(static_cast<std::size_t>(length), '\0');
    std::size_t filled = 0;
    while (filled < text.size()) {
      const auto got =
          ::pread(fd, text.data() + filled, text.size() - filled, static_cast<off_t>(8 + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return system_error("read", path, got < 0 ? errno : EIO);
      filled += static_cast<std::size_t>(got);
    }
    return parse_header(text, file_bytes, path);
  };
  auto result = read();
  ::close(fd);
  return result;
}

Result<Index> read_index(const std::string& directory) {
  const std::string path = directory + "/model.safetensors.index.json";
  Index index;
  if (::access(path.c_str(), F_OK) != 0) {
    TROIKA_TRY(header, read_header(directory + "/model.safetensors"));
    for (const auto& [name, tensor] : header.tensors) {
      index.shard_of[name] = "model.safetensors";
      index.total_bytes += tensor.end - tensor.begin;
    }
    return index;
  }
  TROIKA_TRY(text, read_text(path, kLongestIndex));
  TROIKA_TRY(document, parse_strict(text, path));
  if (!document.is_object() || !document.contains("weight_map") || !document["weight_map"].is_object()) {
    return Error{"read", path, "weight_map is missing or not an object"};
  }
  for (const auto& [name, file] : document["weight_map"].items()) {
    if (!file.is_string()) return Error{"read", path, "weight_map." + name + " is not a string"};
    const auto shard = file.get<std::string>();
    if (shard.empty() || shard.front() == '.' || shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos) {
      return Error{"read", path, "weight_map." + name + " is not a plain file name"};
    }
    index.shard_of[name] = shard;
  }
  const auto metadata = document.find("metadata");
  if (metadata != document.end() && metadata->is_object() && metadata->contains("total_size") &&
      (*metadata)["total_size"].is_number_unsigned()) {
    index.total_bytes = (*metadata)["total_size"].get<std::uint64_t>();
  }
  return index;
}

}  // namespace troika::safetensors
