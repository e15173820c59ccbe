// The layers of one stage, for a batch of token rows.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "engine/native/config.hpp"
#include "engine/native/kv_cache.hpp"
#include "engine/native/rotary.hpp"
#include "engine/native/weights.hpp"
#include "engine/tokenizer/bpe.hpp"
#include "kernels/cpu/crew.hpp"

namespace troika::native {

using tokenizer::TokenId;

// One token of one sequence.
struct Row {
  SequenceId sequence = 0;
  std::uint32_t position = 0;
};

// Every row's result is the same bits whatever other rows are computed with it and whichever stage runs its
// layers.
class Forward {
 public:
  // cache: of weights.range.size() layers and config.kv_entry() floats. All must outlive this.
  Forward(const ModelConfig& config, const Weights& weights, KvCache& cache, kernels::Crew& crew);

  // hidden: [tokens][config.hidden]. First rank only.
  void embed(std::span<const TokenId> tokens, std::vector<float>& hidden) const;
  // Runs the layers on hidden, [rows][config.hidden], in place, and keeps what later rows attend to. The
  // cache has room for each row; rows of a sequence are in the order of their positions. False: stopped half
  // way.
  bool run(std::span<const Row> rows, std::vector<float>& hidden, const std::atomic<bool>& stop);
  // Logits of one row, [config.vocabulary]. Last rank only.
  void logits(const float* hidden, std::vector<float>& out);

 private:
  void attention(const Layer& layer, std::uint32_t number, std::span<const Row> rows);
  void attend(const Layer& layer, std::uint32_t number, std::span<const Row> rows);
  void feed_forward(const FeedForward& weights, const float* x, std::size_t rows, float* out);
  void experts(const Layer& layer, std::size_t rows);
  void project(float* out, const float* x, const Matrix& w, std::size_t rows, std::size_t outputs,
               std::size_t inputs);
  void normalise(float* out, const float* x, const Vector& gain, std::size_t rows, std::size_t n,
                 std::size_t stride);

  const ModelConfig& config_;
  const Weights& weights_;
  KvCache& cache_;
  kernels::Crew& crew_;
  const kernels::Table& kernels_;
  Rotary rotary_;

  // Scratch of the step under way, [rows][...].
  std::vector<float> turns_;      // rope
  std::vector<float> normed_;     // hidden
  std::vector<float> q_latent_;   // q_lora
  std::vector<float> q_;          // heads * q_head
  std::vector<float> kv_;         // kv_entry
  std::vector<float> attended_;   // heads * v_head
  std::vector<float> delta_;      // hidden: what the block adds
  std::vector<float> gate_, up_;  // intermediate
  std::vector<float> scores_;     // experts
  std::vector<float> gathered_, answers_, parts_;
};

}  // namespace troika::native
