// model.safetensors.index.json: accepted if and only if it maps tensors to plain names of shards, and then as
// a library's JSON reads it.
#include "engine/safetensors/index.hpp"

#include <algorithm>

#include "tests/fuzz/require.hpp"

namespace troika::fuzz {
namespace {

using nlohmann::json;

bool plain_shard(const json& value) {
  if (!value.is_string()) return false;
  const std::string name = value.get<std::string>();
  return name.ends_with(".safetensors") && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

bool maps_to_shards(const json& document) {
  if (!document.is_object() || !document.contains("weight_map")) return false;
  const json& map = document["weight_map"];
  return map.is_object() && std::all_of(map.begin(), map.end(), plain_shard);
}

void compare(const safetensors::Index& index, const json& document) {
  const json& map = document["weight_map"];
  require(index.tensors.size() == map.size(), "as many tensors as the text tells");
  for (const auto& [tensor, shard] : map.items()) {
    require(index.shard(tensor) == shard.get<std::string>(), "each tensor lies where the text says");
    const std::string_view first = index.first_tensor_of(shard.get<std::string>());
    require(index.shard(first) == shard.get<std::string>(), "the first tensor of a shard lies in it");
  }
  const auto metadata = document.find("metadata");
  std::uint64_t total = 0;
  if (metadata != document.end() && metadata->is_object()) {
    const json told = metadata->value("total_size", json());
    if (told.is_number_unsigned()) total = told.get<std::uint64_t>();
  }
  require(index.total_bytes == total, "total_size is the text's");
}

}  // namespace
}  // namespace troika::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace troika;
  const std::string_view text = fuzz::text_of(data, size);
  const auto index = safetensors::parse_index(text, "input");
  if (!index.ok())
    fuzz::require(index.error().message().find("input") != std::string::npos, "the error names the file");
  const fuzz::Oracle oracle(text);
  if (!oracle.comparable) return 0;
  const bool good = oracle.document.ok() && fuzz::maps_to_shards(*oracle.document);
  fuzz::require(good == index.ok(), "accepted if and only if the rules are kept");
  if (good) fuzz::compare(*index, *oracle.document);
  return 0;
}
