#include "engine/native/stage.hpp"

#include <new>
#include <utility>

namespace troika::native {
namespace {

Error fault(SequenceId sequence, std::string reason) {
  return Error{"run a step for", "sequence " + std::to_string(sequence), std::move(reason)};
}

}  // namespace

Result<std::unique_ptr<Stage>> Stage::load(const std::string& directory, const ModelConfig& config,
                                           const StageShape& shape, const LoadProgress& progress) {
  TROIKA_TRY(weights, load_weights(directory, config, shape.layers, progress));
  try {
    return std::unique_ptr<Stage>(new Stage(config, std::move(weights), shape));
  } catch (const std::bad_alloc&) {
    return Error{"reserve", "a KV cache of " + std::to_string(shape.kv_tokens) + " tokens", "out of memory"};
  }
}

Stage::Stage(const ModelConfig& config, Weights weights, const StageShape& shape)
    : config_(config),
      weights_(std::move(weights)),
      cache_(shape.layers.size(), config.kv_entry(), shape.kv_tokens),
      crew_(shape.threads),
      forward_(config_, weights_, cache_, crew_) {}

Status Stage::take_in(const Step& step) {
  for (const auto sequence : step.releases) {
    cache_.release(sequence);
    sequences_.erase(sequence);
  }
  for (const auto& admission : step.admissions) {
    if (!sequences_.try_emplace(admission.sequence, Sequence{admission.sampling, 0}).second) {
      return fault(admission.sequence, "admitted twice");
    }
  }
  for (const auto& segment : step.segments) {
    const auto found = sequences_.find(segment.sequence);
    if (found == sequences_.end()) return fault(segment.sequence, "not admitted");
    if (segment.start != found->second.length || segment.count == 0) {
      return fault(segment.sequence, "positions from " + std::to_string(segment.start) + " where " +
                                         std::to_string(found->second.length) + " is next");
    }
    found->second.length += segment.count;
    TROIKA_CHECK(cache_.reserve(segment.sequence, found->second.length));
  }
  return Done{};
}

Status Stage::run(Step& step, StepTokens& out, const std::atomic<bool>& stop) {
  out.number = step.number;
  out.sampled.clear();
  TROIKA_CHECK(take_in(step));
  const auto count = step.rows();
  std::vector<Row> rows;
  rows.reserve(count);
  for (const auto& segment : step.segments) {
    for (std::uint32_t i = 0; i < segment.count; ++i)
      rows.push_back({segment.sequence, segment.start + i});
  }
  if (first()) {
    TROIKA_INVARIANT(step.tokens.size() == count);
    forward_.embed(step.tokens, step.hidden);
  }
  if (step.hidden.size() != count * config_.hidden) {
    return Error{"run", "step " + std::to_string(step.number), "the activations do not fit its segments"};
  }
  if (count == 0) return Done{};
  if (!forward_.run(rows, step.hidden, stop))
    return Error{"run", "step " + std::to_string(step.number), "stopped"};
  if (!last()) return Done{};
  std::size_t end = 0;
  for (const auto& segment : step.segments) {
    end += segment.count;
    if (!segment.sample) continue;
    forward_.logits(step.hidden.data() + (end - 1) * config_.hidden, logits_);
    const auto& sequence = sequences_.at(segment.sequence);
    out.sampled.push_back({segment.sequence, sample(logits_, sequence.sampling, sequence.length)});
  }
  return Done{};
}

}  // namespace troika::native
