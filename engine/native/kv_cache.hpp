// Latents and rotated keys of the tokens seen so far, in pages.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "vocabulary/result.hpp"

namespace troika::native {

// Number of one sequence of one rank 0; never reused within an epoch.
using SequenceId = std::uint64_t;

inline constexpr std::uint32_t kPageTokens = 16;

// For one stage: `layers` layers, `entry` floats a token and layer. Memory is reserved at once and touched
// when used.
class KvCache {
 public:
  // tokens is rounded down to whole pages.
  KvCache(std::uint32_t layers, std::uint32_t entry, std::uint64_t tokens);

  std::uint64_t capacity_tokens() const { return pages_ * kPageTokens; }
  std::uint64_t free_tokens() const { return free_.size() * kPageTokens; }

  // Makes room for positions [0, tokens) of the sequence. Error: no page is free.
  Status reserve(SequenceId sequence, std::uint64_t tokens);
  // Gives the sequence's pages back; an unknown sequence is fine.
  void release(SequenceId sequence);

  // The pages of one layer of the sequence, as kernels want them.
  void pages_of(SequenceId sequence, std::uint32_t layer, std::vector<const float*>& out) const;
  float* entry(SequenceId sequence, std::uint32_t layer, std::uint64_t position);

 private:
  std::size_t offset(std::uint32_t page, std::uint32_t layer) const;

  std::uint32_t layers_;
  std::uint32_t entry_;
  std::uint64_t pages_;
  std::unique_ptr<float[]> data_;  // [page][layer][kPageTokens][entry]
  std::vector<std::uint32_t> free_;
  std::unordered_map<SequenceId, std::vector<std::uint32_t>> tables_;
};

}  // namespace troika::native
