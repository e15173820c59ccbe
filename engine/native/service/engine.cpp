#include "engine/native/service/engine.hpp"

#include <utility>

namespace troika::native {

Engine::Engine(SchedulerLimits limits, const tokenizer::Tokenizer& tokenizer,
               std::vector<tokenizer::TokenId> eos, Run run)
    : scheduler_(limits), tokenizer_(tokenizer), eos_(std::move(eos)), run_(std::move(run)) {}

Result<std::shared_ptr<Generation>> Engine::begin(GenerationRequest request, std::function<void()> changed) {
  auto prompt = request.prompt;
  TROIKA_TRY(id, scheduler_.add(std::move(prompt), request.max_tokens, request.sampling));
  ++counters_.requests;
  counters_.prompt_tokens += request.prompt.size();
  auto generation = std::make_shared<Generation>(std::move(request), tokenizer_, eos_);
  generation->sequence = id;
  generation->changed = std::move(changed);
  generations_.emplace(id, generation);
  pump();
  return generation;
}

void Engine::abort(const Generation& generation) {
  const auto found = generations_.find(generation.sequence);
  if (found == generations_.end()) return;
  ++counters_.aborted;
  scheduler_.end(found->first);
  generations_.erase(found);
  pump();
}

Status Engine::take(const StepTokens& tokens) {
  TROIKA_TRY(live, scheduler_.receive(tokens));
  for (const auto& sampled : live) {
    const auto found = generations_.find(sampled.sequence);
    TROIKA_INVARIANT(found != generations_.end());
    ++counters_.generation_tokens;
    const auto generation = found->second;
    if (!generation->take(sampled.token)) continue;
    scheduler_.end(sampled.sequence);
    generations_.erase(sampled.sequence);
  }
  pump();
  return Done{};
}

void Engine::pump() {
  while (auto step = scheduler_.next())
    run_(std::move(*step));
}

}  // namespace troika::native
