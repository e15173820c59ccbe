#include "engine/native/service/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace troika::native {

std::uint64_t Scheduler::need(std::uint64_t prompt, std::uint64_t output) {
  return (prompt + output + kPageTokens - 1) / kPageTokens * kPageTokens;
}

Result<SequenceId> Scheduler::add(std::vector<tokenizer::TokenId> prompt, std::uint32_t output,
                                  const Sampling& sampling) {
  TROIKA_INVARIANT(!prompt.empty() && output > 0);
  const auto tokens = need(prompt.size(), output);
  if (tokens > kv_capacity()) {
    return Error{"take in", "the request",
                 "needs " + std::to_string(tokens) + " tokens of KV cache, there are " +
                     std::to_string(kv_capacity())};
  }
  if (waiting_.size() >= limits_.waiting) {
    return Error{"take in", "the request", std::to_string(waiting_.size()) + " requests wait already"};
  }
  const auto id = next_id_++;
  Sequence sequence;
  sequence.prompt = prompt.size();
  sequence.tokens = std::move(prompt);
  sequence.need = tokens;
  sequence.sampling = sampling;
  sequences_.emplace(id, std::move(sequence));
  waiting_.push_back(id);
  return id;
}

void Scheduler::end(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  const auto running = std::find(order_.begin(), order_.end(), id);
  if (running != order_.end()) {
    order_.erase(running);
    reserved_ -= found->second.need;
    releases_.push_back(id);
  } else {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), id));
  }
  sequences_.erase(found);
}

void Scheduler::begin_waiting(Step& step) {
  while (!waiting_.empty() && order_.size() < limits_.running) {
    const auto& sequence = sequences_.at(waiting_.front());
    if (reserved_ + sequence.need > kv_capacity()) break;
    reserved_ += sequence.need;
    step.admissions.push_back({waiting_.front(), sequence.sampling});
    order_.push_back(waiting_.front());
    waiting_.pop_front();
  }
}

void Scheduler::append(Step& step, SequenceId id, std::size_t count) {
  auto& sequence = sequences_.at(id);
  const auto from = sequence.tokens.begin() + static_cast<std::ptrdiff_t>(sequence.sent);
  step.tokens.insert(step.tokens.end(), from, from + static_cast<std::ptrdiff_t>(count));
  step.segments.push_back({id, static_cast<std::uint32_t>(sequence.sent), static_cast<std::uint32_t>(count),
                           sequence.sent + count == sequence.tokens.size()});
  sequence.sent += count;
}

std::optional<Step> Scheduler::next() {
  if (next_step_ - 1 - answered_ >= limits_.in_flight) return std::nullopt;
  Step step;
  begin_waiting(step);
  // Decoding sequences are spread over the steps in flight, so that every stage of the pipeline has work.
  const auto most_decoding =
      std::max<std::size_t>(1, (order_.size() + limits_.in_flight - 1) / limits_.in_flight);
  std::size_t rows = 0;
  std::deque<SequenceId> later;
  std::deque<SequenceId> served;
  std::size_t decoding = 0;
  for (const auto id : order_) {
    const auto& sequence = sequences_.at(id);
    if (sequence.ready() && sequence.decoding() && decoding < most_decoding && rows < limits_.rows) {
      append(step, id, 1);
      ++rows;
      ++decoding;
      served.push_back(id);
    } else {
      later.push_back(id);
    }
  }
  // Prefill in the order of arrival keeps the time to the first token short for whoever came first.
  std::vector<SequenceId> prefill;
  for (const auto id : later) {
    if (!sequences_.at(id).decoding()) prefill.push_back(id);
  }
  std::sort(prefill.begin(), prefill.end());
  for (const auto id : prefill) {
    const auto& sequence = sequences_.at(id);
    const auto count = std::min<std::size_t>(limits_.rows - rows, sequence.tokens.size() - sequence.sent);
    if (count == 0) break;
    append(step, id, count);
    rows += count;
  }
  order_ = std::move(later);
  order_.insert(order_.end(), served.begin(), served.end());
  if (step.segments.empty() && step.admissions.empty() && releases_.empty()) return std::nullopt;
  // The wire's limit on sequences holds for releases too; what is over goes with the next step.
  const auto count = std::min<std::size_t>(releases_.size(), limits_.running);
  step.releases.assign(releases_.begin(), releases_.begin() + static_cast<std::ptrdiff_t>(count));
  releases_.erase(releases_.begin(), releases_.begin() + static_cast<std::ptrdiff_t>(count));
  step.number = next_step_++;
  return step;
}

Result<std::vector<Sampled>> Scheduler::receive(const StepTokens& answer) {
  if (answer.number != answered_ + 1 || answer.number >= next_step_) {
    return Error{"take", "the tokens of step " + std::to_string(answer.number),
                 "step " + std::to_string(answered_ + 1) + " is next"};
  }
  ++answered_;
  std::vector<Sampled> live;
  for (const auto& sampled : answer.sampled) {
    const auto found = sequences_.find(sampled.sequence);
    if (found == sequences_.end()) continue;
    if (found->second.ready()) {
      return Error{"take", "a token of sequence " + std::to_string(sampled.sequence), "none was asked for"};
    }
    found->second.tokens.push_back(sampled.token);
    live.push_back(sampled);
  }
  return live;
}

}  // namespace troika::native
