#include "engine/native/forward.hpp"

#include <algorithm>

#include "engine/native/routing.hpp"

namespace troika::native {
namespace {

// Below this many multiplications a second thread costs more than it saves.
constexpr std::size_t kWorthSharing = 1U << 17U;

}  // namespace

Forward::Forward(const ModelConfig& config, const Weights& weights, KvCache& cache, kernels::Crew& crew)
    : config_(config),
      weights_(weights),
      cache_(cache),
      crew_(crew),
      kernels_(kernels::table()),
      rotary_(config) {}

void Forward::project(float* out, const float* x, const Matrix& w, std::size_t rows, std::size_t outputs,
                      std::size_t inputs) {
  if (rows * outputs * inputs < kWorthSharing) {
    kernels_.matmul(out, outputs, x, w.data(), rows, outputs, inputs);
    return;
  }
  crew_.each(outputs, [&](std::size_t begin, std::size_t end) {
    kernels_.matmul(out + begin, outputs, x, w.data() + begin * inputs, rows, end - begin, inputs);
  });
}

void Forward::normalise(float* out, const float* x, const Vector& gain, std::size_t rows, std::size_t n,
                        std::size_t stride) {
  for (std::size_t r = 0; r < rows; ++r) {
    kernels_.rms_norm(out + r * stride, x + r * stride, gain.data(), n, config_.rms_epsilon);
  }
}

void Forward::embed(std::span<const TokenId> tokens, std::vector<float>& hidden) const {
  const std::size_t n = config_.hidden;
  hidden.resize(tokens.size() * n);
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    const auto* from = weights_.embedding.data() + tokens[r] * n;
    std::transform(from, from + n, hidden.begin() + static_cast<std::ptrdiff_t>(r * n), kernels::to_float);
  }
}

bool Forward::run(std::span<const Row> rows, std::vector<float>& hidden, const std::atomic<bool>& stop) {
  const std::size_t n = config_.hidden;
  const std::size_t count = rows.size();
  turns_.resize(count * config_.rope);
  for (std::size_t r = 0; r < count; ++r)
    rotary_.turn(rows[r].position, turns_.data() + r * config_.rope);
  normed_.resize(count * n);
  delta_.resize(count * n);
  for (std::uint32_t i = 0; i < weights_.layers.size(); ++i) {
    if (stop.load(std::memory_order_relaxed)) return false;
    const auto& layer = weights_.layers[i];
    normalise(normed_.data(), hidden.data(), layer.input_norm, count, n, n);
    attention(layer, i, rows);
    for (std::size_t k = 0; k < count * n; ++k)
      hidden[k] += delta_[k];
    normalise(normed_.data(), hidden.data(), layer.post_norm, count, n, n);
    if (config_.dense(weights_.range.begin + i)) {
      feed_forward(layer.dense, normed_.data(), count, delta_.data());
    } else {
      experts(layer, count);
    }
    for (std::size_t k = 0; k < count * n; ++k)
      hidden[k] += delta_[k];
  }
  return true;
}

void Forward::attention(const Layer& layer, std::uint32_t number, std::span<const Row> rows) {
  const std::size_t count = rows.size();
  const std::size_t q_width = static_cast<std::size_t>(config_.heads) * config_.q_head();
  q_.resize(count * q_width);
  if (config_.q_lora == 0) {
    project(q_.data(), normed_.data(), layer.q, count, q_width, config_.hidden);
  } else {
    q_latent_.resize(count * config_.q_lora);
    project(q_latent_.data(), normed_.data(), layer.q_a, count, config_.q_lora, config_.hidden);
    normalise(q_latent_.data(), q_latent_.data(), layer.q_a_norm, count, config_.q_lora, config_.q_lora);
    project(q_.data(), q_latent_.data(), layer.q_b, count, q_width, config_.q_lora);
  }
  const std::size_t entry = config_.kv_entry();
  kv_.resize(count * entry);
  project(kv_.data(), normed_.data(), layer.kv_a, count, entry, config_.hidden);
  normalise(kv_.data(), kv_.data(), layer.kv_a_norm, count, config_.kv_lora, entry);
  for (std::size_t r = 0; r < count; ++r) {
    const float* turn = turns_.data() + r * config_.rope;
    rotary_.apply(kv_.data() + r * entry + config_.kv_lora, turn);
    for (std::size_t h = 0; h < config_.heads; ++h) {
      rotary_.apply(q_.data() + r * q_width + h * config_.q_head() + config_.nope, turn);
    }
    std::copy_n(kv_.data() + r * entry, entry, cache_.entry(rows[r].sequence, number, rows[r].position));
  }
  attend(layer, number, rows);
  project(delta_.data(), attended_.data(), layer.o, count, config_.hidden,
          static_cast<std::size_t>(config_.heads) * config_.v_head);
}

// The absorbed form: the query is taken into the space of the latents by the key half of kv_b, attends there,
// and the result is taken out by the value half. Only latents are cached and read.
void Forward::attend(const Layer& layer, std::uint32_t number, std::span<const Row> rows) {
  const std::size_t heads = config_.heads;
  const std::size_t head_rows = config_.nope + config_.v_head;
  attended_.resize(rows.size() * heads * config_.v_head);
  std::vector<std::vector<const float*>> pages(rows.size());
  std::size_t work = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (r > 0 && rows[r].sequence == rows[r - 1].sequence) {
      pages[r] = pages[r - 1];
    } else {
      cache_.pages_of(rows[r].sequence, number, pages[r]);
    }
    work += (rows[r].position + head_rows) * config_.kv_entry() * heads;
  }
  const auto part = [&](std::size_t begin, std::size_t end) {
    std::vector<float> query(config_.kv_entry());
    std::vector<float> latent(config_.kv_lora);
    std::vector<float> scores;
    for (std::size_t item = begin; item < end; ++item) {
      const std::size_t r = item / heads;
      const std::size_t h = item % heads;
      const float* q = q_.data() + item * config_.q_head();
      const Bf16* keys = layer.kv_b.data() + h * head_rows * config_.kv_lora;
      const Bf16* values = keys + static_cast<std::size_t>(config_.nope) * config_.kv_lora;
      kernels_.combine_rows(query.data(), q, keys, config_.nope, config_.kv_lora);
      std::copy_n(q + config_.nope, config_.rope, query.data() + config_.kv_lora);
      const std::size_t count = rows[r].position + 1U;
      scores.resize(count);
      kernels_.attend_latent(latent.data(), query.data(), pages[r].data(), kPageTokens, count,
                             config_.kv_lora, config_.rope, rotary_.softmax_scale(), scores.data());
      kernels_.matmul(attended_.data() + item * config_.v_head, config_.v_head, latent.data(), values, 1,
                      config_.v_head, config_.kv_lora);
    }
  };
  if (work < kWorthSharing) {
    part(0, rows.size() * heads);
  } else {
    crew_.each(rows.size() * heads, part);
  }
}

void Forward::feed_forward(const FeedForward& weights, const float* x, std::size_t rows, float* out) {
  const std::size_t width = weights.intermediate;
  gate_.resize(rows * width);
  up_.resize(rows * width);
  project(gate_.data(), x, weights.gate, rows, width, config_.hidden);
  project(up_.data(), x, weights.up, rows, width, config_.hidden);
  for (std::size_t r = 0; r < rows; ++r)
    kernels_.silu_multiply(gate_.data() + r * width, up_.data() + r * width, width);
  project(out, gate_.data(), weights.down, rows, config_.hidden, width);
}

void Forward::experts(const Layer& layer, std::size_t rows) {
  const std::size_t n = config_.hidden;
  const std::size_t slots = config_.experts_per_token;
  scores_.resize(rows * config_.experts);
  project(scores_.data(), normed_.data(), layer.router, rows, config_.experts, n);
  struct Use {
    std::size_t row;
    std::size_t slot;
  };
  std::vector<std::vector<Use>> uses(config_.experts);
  std::vector<Choice> chosen(rows * slots);
  std::vector<Choice> choices;
  for (std::size_t r = 0; r < rows; ++r) {
    float* scores = scores_.data() + r * config_.experts;
    kernels_.sigmoid(scores, config_.experts);
    choose_experts(config_, {scores, config_.experts}, layer.router_bias, choices);
    for (std::size_t slot = 0; slot < slots; ++slot) {
      chosen[r * slots + slot] = choices[slot];
      uses[choices[slot].expert].push_back({r, slot});
    }
  }
  // Expert by expert over the rows that chose it; what each row gets is kept by slot and summed in the order
  // of the slots, so that the sum does not depend on the other rows.
  parts_.resize(rows * slots * n);
  for (std::size_t e = 0; e < uses.size(); ++e) {
    const auto& list = uses[e];
    if (list.empty()) continue;
    gathered_.resize(list.size() * n);
    answers_.resize(list.size() * n);
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::copy_n(normed_.data() + list[i].row * n, n, gathered_.data() + i * n);
    }
    feed_forward(layer.experts[e], gathered_.data(), list.size(), answers_.data());
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::copy_n(answers_.data() + i * n, n, parts_.data() + (list[i].row * slots + list[i].slot) * n);
    }
  }
  if (config_.shared_experts > 0) {
    feed_forward(layer.shared, normed_.data(), rows, delta_.data());
  } else {
    std::fill(delta_.begin(), delta_.end(), 0.0F);
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const float weight = chosen[r * slots + slot].weight;
      const float* part = parts_.data() + (r * slots + slot) * n;
      for (std::size_t k = 0; k < n; ++k)
        delta_[r * n + k] += weight * part[k];
    }
  }
}

void Forward::logits(const float* hidden, std::vector<float>& out) {
  std::vector<float> normed(config_.hidden);
  kernels_.rms_norm(normed.data(), hidden, weights_.norm.data(), config_.hidden, config_.rms_epsilon);
  out.resize(config_.vocabulary);
  project(out.data(), normed.data(), weights_.head, 1, config_.vocabulary, config_.hidden);
}

}  // namespace troika::native
