// What the agent writes down of a stage before it starts: enough for an agent that comes later to go on with
// it.
#pragma once

#include <string>

#include "agent/stage/identity.hpp"
#include "engine/adapters/adapter.hpp"
#include "vocabulary/result.hpp"

namespace troika::agent {

struct StageFile {
  std::string engine;  // kind
  adapters::StagePlan plan;
  std::string api;   // host:port, of rank 0; empty: none
  std::string link;  // host:port; empty: none

  StageKey key() const { return {plan.stage, plan.epoch}; }
};

inline constexpr const char* kStageFile = "stage.json";

std::string write(const StageFile& file);
Result<StageFile> read_stage_file(const std::string& path);

}  // namespace troika::agent
