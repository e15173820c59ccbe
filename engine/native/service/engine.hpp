// Rank 0's requests: from admission to the last token.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "engine/native/service/generation.hpp"
#include "engine/native/service/scheduler.hpp"

namespace troika::native {

struct EngineCounters {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generation_tokens = 0;
  std::uint64_t requests = 0;
  std::uint64_t aborted = 0;
};

// All on the I/O thread.
class Engine {
 public:
  using Run = std::function<void(Step)>;

  Engine(SchedulerLimits limits, const tokenizer::Tokenizer& tokenizer, std::vector<tokenizer::TokenId> eos,
         Run run);

  // Error: it could never fit the KV cache, or too many requests wait.
  Result<std::shared_ptr<Generation>> begin(GenerationRequest request, std::function<void()> changed);
  // Nobody wants the rest of it.
  void abort(const Generation& generation);
  // Error: not the answer to a step in flight.
  Status take(const StepTokens& tokens);

  const EngineCounters& counters() const { return counters_; }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  void pump();

  Scheduler scheduler_;
  const tokenizer::Tokenizer& tokenizer_;
  std::vector<tokenizer::TokenId> eos_;
  Run run_;
  EngineCounters counters_;
  std::map<SequenceId, std::shared_ptr<Generation>> generations_;
};

}  // namespace troika::native
