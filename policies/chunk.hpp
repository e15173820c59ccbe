// What StreamReader reads of one event's JSON. Private to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troika::policies {

struct ChunkChoice {
  std::uint32_t index = 0;
  bool finished = false;
  bool failed = false;  // by its finish_reason
};

struct Chunk {
  bool error = false;
  bool text = false;  // some choice carries text
  std::optional<std::uint64_t> completion_tokens;
  std::vector<ChunkChoice> choices;
};

// Nothing where the text is not one whole JSON object, is deeper than max_depth, or has more than max_choices
// choices.
std::optional<Chunk> read_chunk(std::string_view json, int max_depth, std::size_t max_choices);

}  // namespace troika::policies
