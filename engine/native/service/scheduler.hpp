// Rank 0's decision which rows run next. Pure: no clock, no socket, no thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "engine/native/step.hpp"
#include "vocabulary/result.hpp"

namespace troika::native {

struct SchedulerLimits {
  std::uint32_t running = 8;    // sequences at a time
  std::uint32_t rows = 512;     // token rows of a step (the chunk of prefill)
  std::uint32_t in_flight = 1;  // steps in the pipeline at a time
  std::uint32_t waiting = 256;  // sequences not yet begun; beyond, add() refuses
  std::uint64_t kv_tokens = 0;  // the least capacity of all ranks
};

// Room for a sequence's whole prompt and output is set aside when it begins, so a running sequence never runs
// out. Sequences begin in the order in which they came. Sequences that decode go before prefill in every
// step; a long prompt is cut into chunks and never holds the others up for more than one of them.
class Scheduler {
 public:
  explicit Scheduler(SchedulerLimits limits) : limits_(limits) {}

  // Pages' worth of tokens that a sequence needs.
  static std::uint64_t need(std::uint64_t prompt, std::uint64_t output);

  // prompt is not empty, output at least 1. Error: it could never fit, or too many wait.
  Result<SequenceId> add(std::vector<tokenizer::TokenId> prompt, std::uint32_t output,
                         const Sampling& sampling);
  // The sequence has ended, or nobody wants it any more. Its room is free from the next step on.
  void end(SequenceId sequence);

  // The next step, if there is something to do and the pipeline has room.
  std::optional<Step> next();
  // Takes the answer to the oldest step in flight; returns the tokens of sequences that still live. A
  // sequence goes on with its token unless it is ended. Error: not the answer to that step.
  Result<std::vector<Sampled>> receive(const StepTokens& answer);

  std::size_t running() const { return order_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  std::uint64_t kv_reserved() const { return reserved_; }
  std::uint64_t kv_capacity() const { return limits_.kv_tokens / kPageTokens * kPageTokens; }

 private:
  struct Sequence {
    std::vector<tokenizer::TokenId> tokens;
    std::size_t sent = 0;  // tokens given to the pipeline
    std::size_t prompt = 0;
    std::uint64_t need = 0;
    Sampling sampling;
    bool ready() const { return sent < tokens.size(); }
    bool decoding() const { return sent >= prompt; }
  };

  void begin_waiting(Step& step);
  void append(Step& step, SequenceId id, std::size_t count);

  SchedulerLimits limits_;
  SequenceId next_id_ = 1;
  std::uint64_t next_step_ = 1;
  std::uint64_t answered_ = 0;
  std::uint64_t reserved_ = 0;
  std::map<SequenceId, Sequence> sequences_;  // waiting and running
  std::deque<SequenceId> waiting_;
  std::deque<SequenceId> order_;  // running, the one longest without a row first
  std::vector<SequenceId> releases_;
};

}  // namespace troika::native
