#include "engine/safetensors/index.hpp"

#include <algorithm>
#include <utility>

#include "engine/safetensors/json_reader.hpp"

namespace troika::safetensors {
namespace {

using Kind = JsonReader::Kind;

class IndexText {
 public:
  IndexText(std::string_view text, const std::string& subject) : in_(text), subject_(subject) {}

  Result<Index> read() {
    if (in_.next() != Kind::Object) return wrong("a JSON object is expected");
    NameTable keys;
    bool map = false;
    std::string_view key;
    (void)in_.enter(Kind::Object);
    while (in_.member(key)) {
      const auto [id, fresh] = keys.insert(key);
      if (!fresh) return twice(key);
      if (keys.name(id) == "weight_map") {
        map = true;
        TROIKA_CHECK(read_map());
      } else if (keys.name(id) == "metadata" && in_.next() == Kind::Object) {
        TROIKA_CHECK(read_metadata());
      } else if (!in_.skip()) {
        break;
      }
    }
    if (in_.failed() || !in_.end()) return broken();
    if (!map) return wrong("\"weight_map\" must be an object");
    return std::move(index_);
  }

 private:
  Error wrong(std::string reason) const { return Error{"read the index", subject_, std::move(reason)}; }
  Error broken() const { return wrong("not JSON, " + in_.problem()); }
  Error twice(std::string_view key) const { return wrong("\"" + std::string(key) + "\" stands twice"); }

  Status read_map() {
    if (in_.next() != Kind::Object) return wrong("\"weight_map\" must be an object");
    std::string_view tensor, shard;
    (void)in_.enter(Kind::Object);
    while (in_.member(tensor)) {
      const auto [id, fresh] = index_.tensors.insert(tensor);
      const std::string_view name = index_.tensors.name(id);
      if (!fresh) return twice(name);
      if (in_.next() != Kind::String) return wrong("weight_map." + std::string(name) + " must be a string");
      if (!in_.string(shard)) return broken();
      const bool plain = shard.ends_with(".safetensors") && shard.front() != '.' &&
                         shard.find('/') == std::string_view::npos &&
                         shard.find('\0') == std::string_view::npos;
      if (!plain)
        return wrong("weight_map." + std::string(name) + " names \"" + std::string(shard) +
                     "\", which is no shard of this directory");
      index_.shard_of.push_back(index_.shards.insert(shard).id);
    }
    if (in_.failed()) return broken();
    return Done{};
  }

  Status read_metadata() {
    NameTable keys;
    std::string_view key;
    (void)in_.enter(Kind::Object);
    while (in_.member(key)) {
      const auto [id, fresh] = keys.insert(key);
      if (!fresh) return twice(key);
      const bool total = keys.name(id) == "total_size" && in_.next() == Kind::Unsigned;
      if (!(total ? in_.number(index_.total_bytes) : in_.skip())) return broken();
    }
    if (in_.failed()) return broken();
    return Done{};
  }

  JsonReader in_;
  const std::string& subject_;
  Index index_;
};

}  // namespace

std::string_view Index::shard(std::string_view tensor) const {
  const auto id = tensors.find(tensor);
  return id ? shards.name(shard_of[*id]) : std::string_view{};
}

std::string_view Index::first_tensor_of(std::string_view shard) const {
  const auto id = shards.find(shard);
  if (!id) return {};
  const auto first = std::find(shard_of.begin(), shard_of.end(), *id);
  return tensors.name(static_cast<std::uint32_t>(first - shard_of.begin()));
}

Result<Index> parse_index(std::string_view text, const std::string& subject) {
  if (const auto bad = find_bad_utf8(text))
    return Error{"read the index", subject, "not UTF-8, near byte " + std::to_string(*bad)};
  return IndexText{text, subject}.read();
}

}  // namespace troika::safetensors
