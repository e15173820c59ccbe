// One stage of the pipeline without its links: weights, cache and sampler.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>

#include "engine/native/forward.hpp"
#include "engine/native/step.hpp"

namespace troika::native {

struct StageShape {
  LayerRange layers;
  std::uint64_t kv_tokens = 0;  // capacity of the cache
  std::size_t threads = 1;
};

class Stage {
 public:
  static Result<std::unique_ptr<Stage>> load(const std::string& directory, const ModelConfig& config,
                                             const StageShape& shape, const LoadProgress& progress);

  // Runs a step in place: on the first rank from step.tokens, else from step.hidden; leaves step.hidden for
  // the next rank. On the last rank `out` gets the tokens. Error: the step names a sequence that was not
  // admitted, or positions out of order, or more than the cache holds (a fault of the peer), or "stopped".
  Status run(Step& step, StepTokens& out, const std::atomic<bool>& stop);

  bool first() const { return weights_.range.begin == 0; }
  bool last() const { return weights_.range.end == config_.layers; }
  const Weights& weights() const { return weights_; }
  const KvCache& cache() const { return cache_; }
  // Logits of the last sampled row of the latest step; for tests and comparison with the reference.
  const std::vector<float>& last_logits() const { return logits_; }

 private:
  struct Sequence {
    Sampling sampling;
    std::uint32_t length = 0;
  };

  Stage(const ModelConfig& config, Weights weights, const StageShape& shape);
  Status take_in(const Step& step);

  ModelConfig config_;
  Weights weights_;
  KvCache cache_;
  kernels::Crew crew_;
  Forward forward_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  std::vector<float> logits_;
};

}  // namespace troika::native
