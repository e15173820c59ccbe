// The header of a safetensors file: what is accepted keeps the format's rules, and everything that keeps them
// is accepted, by a second reading of the rules over a library's JSON.
#include "engine/safetensors/header.hpp"

#include <algorithm>
#include <tuple>

#include "tests/fuzz/require.hpp"

namespace troika::fuzz {
namespace {

using nlohmann::json;
using safetensors::Header;

struct Told {
  std::uint64_t begin, end;
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  auto operator<=>(const Told&) const = default;
};

bool unsigned_list(const json& value, std::vector<std::uint64_t>& out) {
  if (!value.is_array()) return false;
  for (const json& one : value) {
    if (!one.is_number_unsigned()) return false;
    out.push_back(one.get<std::uint64_t>());
  }
  return true;
}

bool read_tensor(const std::string& name, const json& entry, std::vector<Told>& tensors) {
  if (!entry.is_object()) return false;
  for (const char* field : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(field)) return false;
  Told told{0, 0, name, "", {}};
  std::vector<std::uint64_t> offsets;
  if (!entry["dtype"].is_string() || !unsigned_list(entry["shape"], told.shape) ||
      !unsigned_list(entry["data_offsets"], offsets) || offsets.size() != 2 || told.shape.size() > 64)
    return false;
  told.dtype = entry["dtype"].get<std::string>();
  told.begin = offsets[0];
  told.end = offsets[1];
  if (!safetensors::dtype_of(told.dtype)) return false;
  tensors.push_back(std::move(told));
  return true;
}

bool texts_only(const json& metadata) {
  return metadata.is_object() &&
         std::all_of(metadata.begin(), metadata.end(), [](const json& value) { return value.is_string(); });
}

// The tensors by offset, if the rules are kept.
std::optional<std::vector<Told>> by_the_rules(std::string_view text, const json& document) {
  if (text.front() != '{' || text[text.find_last_not_of(' ')] != '}') return std::nullopt;
  std::vector<Told> tensors;
  for (const auto& [name, entry] : document.items())
    if (name == "__metadata__" ? !texts_only(entry) : !read_tensor(name, entry, tensors)) return std::nullopt;
  std::sort(tensors.begin(), tensors.end());
  std::uint64_t next = 0;
  for (const Told& one : tensors) {
    unsigned __int128 bits = safetensors::bits_of(*safetensors::dtype_of(one.dtype));
    for (const std::uint64_t size : one.shape) {
      bits *= size;
      if (bits >> 64 != 0) return std::nullopt;
    }
    if (one.begin != next || one.end < one.begin || bits % 8 != 0 || one.end - one.begin != bits / 8)
      return std::nullopt;
    next = one.end;
  }
  if (next > UINT64_MAX - 8 - text.size()) return std::nullopt;
  return tensors;
}

void compare(const Header& header, const std::vector<Told>& told, std::size_t bytes) {
  require(header.tensors.size() == told.size(), "as many tensors as the text tells");
  require(header.names.size() == told.size(), "every tensor has a name of its own");
  for (std::size_t i = 0; i < told.size(); ++i) {
    const safetensors::Tensor& tensor = header.tensors[i];
    require(std::tie(tensor.name, tensor.shape, tensor.begin, tensor.end) ==
                std::tuple{std::string_view(told[i].name), told[i].shape, told[i].begin, told[i].end},
            "name, shape and offsets are those of the text");
    require(name(tensor.dtype) == told[i].dtype, "so is the dtype");
    require(header.names.find(tensor.name).has_value(), "its name is found");
  }
  require(header.data_begin == 8 + bytes, "the data begin behind the header");
  require(header.file_bytes == header.data_begin + (told.empty() ? 0 : told.back().end),
          "the file ends where the last tensor does");
}

}  // namespace
}  // namespace troika::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace troika;
  const std::string_view text = fuzz::text_of(data, size);
  const auto length = safetensors::header_length(text.substr(0, std::min<std::size_t>(size, 8)), size);
  fuzz::require(length.fault || length.bytes + 8 <= size, "a header lies inside its file");

  const safetensors::Header header = safetensors::parse_header(text);
  if (header.fault) {
    fuzz::require(!header.fault->rule.empty() && !header.fault->text().empty(), "a fault has a name");
  } else {
    fuzz::require(header.file_bytes >= header.data_begin, "no size wraps round");
  }
  const fuzz::Oracle oracle(text);
  if (!oracle.comparable) return 0;
  const bool object = oracle.document.ok() && oracle.document->is_object();
  const auto told = object ? fuzz::by_the_rules(text, *oracle.document) : std::nullopt;
  fuzz::require(told.has_value() == !header.fault.has_value(), "accepted if and only if the rules are kept");
  if (told) fuzz::compare(header, *told, size);
  return 0;
}
