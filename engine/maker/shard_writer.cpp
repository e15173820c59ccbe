#include "engine/maker/shard_writer.hpp"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

namespace troika::maker {
namespace {

Status write_parts(const std::string& path, std::span<const std::string_view> parts) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wbe"));
  if (!file) return system_error("create", path, errno);
  for (const auto part : parts) {
    if (!part.empty() && std::fwrite(part.data(), 1, part.size(), file.get()) != part.size()) {
      return system_error("write", path, errno);
    }
  }
  if (std::fclose(file.release()) != 0) return system_error("write", path, errno);
  return Done{};
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

Status write_file(const std::string& path, std::string_view content) {
  return write_parts(path, std::span(&content, 1));
}

Result<std::uint64_t> write_shard(const std::string& path, const std::vector<OutTensor>& tensors) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    const auto bytes = bytes_of(tensor.values).size() + bytes_of(tensor.wide_values).size();
    header[tensor.name] = {{"dtype", tensor.wide_values.empty() ? "BF16" : "F32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length;
  for (unsigned shift = 0; shift < 64; shift += 8)
    length.push_back(static_cast<char>(text.size() >> shift & 0xffU));
  std::vector<std::string_view> parts{length, text};
  for (const auto& tensor : tensors) {
    parts.push_back(bytes_of(tensor.values));
    parts.push_back(bytes_of(tensor.wide_values));
  }
  TROIKA_CHECK(write_parts(path, parts));
  return length.size() + text.size() + offset;
}

}  // namespace troika::maker
