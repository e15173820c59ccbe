#include "policies/chunk.hpp"

#include <nlohmann/json.hpp>

namespace troika::policies {
namespace {

using Json = nlohmann::json;

// Follows the places that matter while the parser goes along; no tree is built, so a hostile event costs
// nothing.
class ChunkHandler : public Json::json_sax_t {
 public:
  ChunkHandler(Chunk& chunk, int max_depth, std::size_t max_choices)
      : chunk_(chunk), max_depth_(max_depth), max_choices_(max_choices) {}

  bool null() override { return leave_value(); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t) override { return scalar(true); }
  bool number_unsigned(number_unsigned_t value) override {
    if (at({"usage", "completion_tokens"})) chunk_.completion_tokens = value;
    if (at({"choices", "[]", "index"}) && !chunk_.choices.empty() && value <= UINT32_MAX)
      chunk_.choices.back().index = static_cast<std::uint32_t>(value);
    return scalar(true);
  }
  bool number_float(number_float_t, const string_t&) override { return scalar(true); }
  bool string(string_t& value) override {
    if (at({"object"}) && value == "error") chunk_.error = true;
    if (!chunk_.choices.empty()) {
      if (at({"choices", "[]", "finish_reason"})) {
        chunk_.choices.back().finished = true;
        chunk_.choices.back().failed = value == "error" || value == "abort";
      }
      if (!value.empty() && carries_text()) chunk_.text = true;
    }
    return scalar(true);
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (depth_ == 0) object_at_top_ = true;
    if (at({"error"})) chunk_.error = true;
    if (at({"choices", "[]"})) {
      if (chunk_.choices.size() >= max_choices_) return false;
      chunk_.choices.emplace_back();
    }
    return enter("{}");
  }
  bool key(string_t& value) override {
    if (depth_ <= kFollowed) path_[static_cast<std::size_t>(depth_) - 1] = value.substr(0, kLongestKey);
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override {
    if (at({"choices", "[]", "delta", "tool_calls"})) chunk_.text = true;
    return enter("[]");
  }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

  bool object_at_top() const { return object_at_top_; }

 private:
  static constexpr int kFollowed = 5;             // no place that matters lies deeper
  static constexpr std::size_t kLongestKey = 32;  // no key that matters is longer

  // path_[i] is the key (or "[]") under which the value at depth i+1 stands.
  bool at(std::initializer_list<std::string_view> place) const {
    if (static_cast<std::size_t>(depth_) != place.size()) return false;
    std::size_t i = 0;
    for (const std::string_view part : place)
      if (path_[i++] != part) return false;
    return true;
  }
  bool carries_text() const {
    for (const std::string_view field : {"content", "reasoning_content", "reasoning"})
      if (at({"choices", "[]", "delta", field}) || at({"choices", "[]", "message", field})) return true;
    return at({"choices", "[]", "text"});
  }
  bool scalar(bool value) {
    if (value && at({"error"})) chunk_.error = true;
    return leave_value();
  }
  bool leave_value() { return depth_ > 0; }  // a bare scalar is no event
  bool enter(std::string_view inside) {
    if (++depth_ > max_depth_) return false;
    if (depth_ <= kFollowed) path_[static_cast<std::size_t>(depth_) - 1] = inside;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  Chunk& chunk_;
  int max_depth_;
  std::size_t max_choices_;
  int depth_ = 0;
  bool object_at_top_ = false;
  std::string path_[kFollowed];
};

}  // namespace

std::optional<Chunk> read_chunk(std::string_view json, int max_depth, std::size_t max_choices) {
  Chunk chunk;
  ChunkHandler handler(chunk, max_depth, max_choices);
  if (!Json::sax_parse(json.begin(), json.end(), &handler)) return std::nullopt;
  if (!handler.object_at_top()) return std::nullopt;
  return chunk;
}

}  // namespace troika::policies
