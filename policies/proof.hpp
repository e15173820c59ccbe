// Judging the proof of a replica: are the settings in force those of the plan, and does it generate? Pure.
// Modes 68, 43, 85; no HTTP endpoint is a health signal: a completion with tokens and a counter that moved
// are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vocabulary/finding.hpp"
#include "vocabulary/names.hpp"
#include "vocabulary/units.hpp"

namespace troika::policies {

struct EngineSettings {
  std::string model;  // served name
  Tokens context_length;
  Tokens chunked_prefill;
  std::uint32_t max_running = 0;
  std::vector<std::uint32_t> layers;  // by rank
};

struct ProbeFacts {
  bool completed = false;    // a whole answer came
  Tokens completion_tokens;  // by the answer's own usage
  Tokens counter_advance;    // of the engine's generation counter around the completion
  std::string error;         // why not, where completed is false
  EngineSettings effective;  // in force, as the engine tells
};

// Empty: proven. EFFECTIVE_CONFIG_DIFF for each setting that differs; NOT_READY where no completion came or
// it has no token (text is not asked for: a reasoning model may leave content null); GENERATION_STUCK where
// the counter did not advance by at least the completion's tokens.
std::vector<Finding> judge_probe(const StageId& stage, const std::string& node, const EngineSettings& planned,
                                 const ProbeFacts& facts);

}  // namespace troika::policies
