// What travels through the pipeline: one step downstream, its tokens back to rank 0.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/native/kv_cache.hpp"
#include "engine/native/sampler.hpp"

namespace troika::native {

// A sequence that begins with this step.
struct Admission {
  SequenceId sequence = 0;
  Sampling sampling;

  bool operator==(const Admission&) const = default;
};

// Consecutive tokens of one sequence.
struct Segment {
  SequenceId sequence = 0;
  std::uint32_t start = 0;  // position of the first
  std::uint32_t count = 0;
  bool sample = false;  // a token follows the last one

  bool operator==(const Segment&) const = default;
};

// A rank frees `releases` first, then takes `admissions` in, then runs `segments`. Steps reach every rank in
// the order of their numbers, so that what a step frees is free before a later step needs it.
struct Step {
  std::uint64_t number = 0;
  std::vector<SequenceId> releases;
  std::vector<Admission> admissions;
  std::vector<Segment> segments;
  std::vector<tokenizer::TokenId> tokens;  // of the segments' rows; rank 0 only, not sent
  std::vector<float> hidden;               // [rows][hidden]; ranks after 0

  std::size_t rows() const {
    std::size_t count = 0;
    for (const auto& segment : segments)
      count += segment.count;
    return count;
  }
};

struct Sampled {
  SequenceId sequence = 0;
  tokenizer::TokenId token = 0;

  bool operator==(const Sampled&) const = default;
};

// The answer of the last rank to a step; also its receipt where no token was sampled.
struct StepTokens {
  std::uint64_t number = 0;
  std::vector<Sampled> sampled;
};

}  // namespace troika::native
