#include "engine/native/weights.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "engine/safetensors/files.hpp"

namespace troika::native {
namespace {

using Shape = std::vector<std::uint64_t>;

// Read in parts of this size, so that stopping and progress do not wait for a large tensor.
constexpr std::size_t kReadBytes = 4U << 20U;

struct Wanted {
  std::string name;
  Shape shape;
  Matrix* matrix = nullptr;  // one of the two
  Vector* vector = nullptr;
};

std::string text(const Shape& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    out += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return out + "]";
}

// Lists every tensor of the range with the place it goes to.
class Plan {
 public:
  Plan(const ModelConfig& config, Weights& weights) : config_(config) {
    const std::uint64_t hidden = config.hidden;
    if (weights.range.begin == 0)
      matrix("model.embed_tokens.weight", {config.vocabulary, hidden}, weights.embedding);
    weights.layers.resize(weights.range.size());
    for (std::uint32_t i = 0; i < weights.range.size(); ++i)
      layer(weights.range.begin + i, weights.layers[i]);
    if (weights.range.end == config.layers) {
      vector("model.norm.weight", {hidden}, weights.norm);
      matrix("lm_head.weight", {config.vocabulary, hidden}, weights.head);
    }
  }

  std::vector<Wanted> wanted;

 private:
  void matrix(std::string name, Shape shape, Matrix& place) {
    wanted.push_back({std::move(name), std::move(shape), &place, nullptr});
  }
  void vector(std::string name, Shape shape, Vector& place) {
    wanted.push_back({std::move(name), std::move(shape), nullptr, &place});
  }
  void feed_forward(const std::string& prefix, std::uint32_t intermediate, FeedForward& place) {
    const std::uint64_t hidden = config_.hidden;
    place.intermediate = intermediate;
    matrix(prefix + "gate_proj.weight", {intermediate, hidden}, place.gate);
    matrix(prefix + "up_proj.weight", {intermediate, hidden}, place.up);
    matrix(prefix + "down_proj.weight", {hidden, intermediate}, place.down);
  }

  void layer(std::uint32_t number, Layer& place) {
    const std::string prefix = "model.layers." + std::to_string(number) + ".";
    const std::uint64_t hidden = config_.hidden;
    const std::uint64_t heads = config_.heads;
    vector(prefix + "input_layernorm.weight", {hidden}, place.input_norm);
    vector(prefix + "post_attention_layernorm.weight", {hidden}, place.post_norm);
    const std::string attention = prefix + "self_attn.";
    if (config_.q_lora == 0) {
      matrix(attention + "q_proj.weight", {heads * config_.q_head(), hidden}, place.q);
    } else {
      matrix(attention + "q_a_proj.weight", {config_.q_lora, hidden}, place.q_a);
      vector(attention + "q_a_layernorm.weight", {config_.q_lora}, place.q_a_norm);
      matrix(attention + "q_b_proj.weight", {heads * config_.q_head(), config_.q_lora}, place.q_b);
    }
    matrix(attention + "kv_a_proj_with_mqa.weight", {config_.kv_entry(), hidden}, place.kv_a);
    vector(attention + "kv_a_layernorm.weight", {config_.kv_lora}, place.kv_a_norm);
    matrix(attention + "kv_b_proj.weight", {heads * (config_.nope + config_.v_head), config_.kv_lora},
           place.kv_b);
    matrix(attention + "o_proj.weight", {hidden, heads * config_.v_head}, place.o);
    const std::string mlp = prefix + "mlp.";
    if (config_.dense(number)) {
      feed_forward(mlp, config_.intermediate, place.dense);
      return;
    }
    matrix(mlp + "gate.weight", {config_.experts, hidden}, place.router);
    vector(mlp + "gate.e_score_correction_bias", {config_.experts}, place.router_bias);
    if (config_.shared_experts > 0) {
      feed_forward(mlp + "shared_experts.", config_.moe_intermediate * config_.shared_experts, place.shared);
    }
    place.experts.resize(config_.experts);
    for (std::uint32_t i = 0; i < config_.experts; ++i) {
      feed_forward(mlp + "experts." + std::to_string(i) + ".", config_.moe_intermediate, place.experts[i]);
    }
  }

  const ModelConfig& config_;
};

class File {
 public:
  explicit File(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  Status read(void* to, std::size_t bytes, std::uint64_t offset) const {
    if (fd_ < 0) return system_error("open", path_, errno);
    auto* place = static_cast<char*>(to);
    while (bytes > 0) {
      const auto got = ::pread(fd_, place, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error("read", path_, errno);
      if (got == 0) return Error{"read", path_, "the file became shorter while it was read"};
      place += got;
      bytes -= static_cast<std::size_t>(got);
      offset += static_cast<std::uint64_t>(got);
    }
    return Done{};
  }

 private:
  std::string path_;
  int fd_;
};

// A tensor of a shard and where the stage wants it.
struct Found {
  const Wanted* wanted = nullptr;
  bool wide = false;        // F32, else BF16
  std::uint64_t begin = 0;  // bytes from the start of the file
  std::uint64_t end = 0;
};

Result<Found> find(const Wanted& wanted, const safetensors::Header& header, const std::string& path) {
  using safetensors::Dtype;
  const auto tensor = std::find_if(header.tensors.begin(), header.tensors.end(),
                                   [&](const safetensors::Tensor& one) { return one.name == wanted.name; });
  if (tensor == header.tensors.end())
    return Error{"load " + wanted.name + " from", path, "the shard does not hold it"};
  const bool wide = tensor->dtype == Dtype::F32;
  if (tensor->dtype != Dtype::BF16 && !(wide && wanted.vector != nullptr))
    return Error{"load " + wanted.name + " from", path,
                 std::string("dtype ") + safetensors::name(tensor->dtype) + " is not supported, only BF16"};
  if (tensor->shape != wanted.shape) {
    return Error{"load " + wanted.name + " from", path,
                 "shape " + text(tensor->shape) + " where config.json means " + text(wanted.shape)};
  }
  return Found{&wanted, wide, header.data_begin + tensor->begin, header.data_begin + tensor->end};
}

}  // namespace

Result<Weights> load_weights(const std::string& directory, const ModelConfig& config, LayerRange range,
                             const LoadProgress& progress) {
  if (range.begin >= range.end || range.end > config.layers) {
    return Error{"load", "layers " + std::to_string(range.begin) + ":" + std::to_string(range.end),
                 "the model has layers 0:" + std::to_string(config.layers)};
  }
  TROIKA_TRY(index, safetensors::read_index(directory));
  Weights weights;
  weights.range = range;
  Plan plan(config, weights);
  std::map<std::string, std::vector<const Wanted*>> by_shard;
  for (const auto& wanted : plan.wanted) {
    const auto shard = index.shard(wanted.name);
    if (shard.empty()) return Error{"load", wanted.name, "the model's index does not name it"};
    by_shard[std::string(shard)].push_back(&wanted);
  }
  std::map<std::string, std::vector<Found>> found;
  for (const auto& [shard, list] : by_shard) {
    const auto path = directory + "/" + shard;
    TROIKA_TRY(header, safetensors::read_header(path));
    for (const auto* wanted : list) {
      TROIKA_TRY(tensor, find(*wanted, header, path));
      weights.bytes += tensor.end - tensor.begin;
      ++weights.tensors;
      found[shard].push_back(tensor);
    }
  }
  std::uint64_t done = 0;
  const Error stopped{"load", directory, "stopped"};
  for (const auto& [shard, list] : found) {
    const File file(directory + "/" + shard);
    for (const auto& [wanted, wide, begin, end] : list) {
      const auto bytes = static_cast<std::size_t>(end - begin);
      Matrix narrow;
      Matrix& halves = wanted->matrix != nullptr ? *wanted->matrix : narrow;
      char* place = nullptr;
      if (wide) {
        wanted->vector->resize(bytes / sizeof(float));
        place = reinterpret_cast<char*>(wanted->vector->data());
      } else {
        halves.resize(bytes / sizeof(Bf16));
        place = reinterpret_cast<char*>(halves.data());
      }
      for (std::size_t offset = 0; offset < bytes; offset += kReadBytes) {
        if (!progress(done, weights.bytes)) return stopped;
        const auto part = std::min(kReadBytes, bytes - offset);
        TROIKA_CHECK(file.read(place + offset, part, begin + offset));
        done += part;
      }
      if (!wide && wanted->vector != nullptr) {
        std::transform(narrow.begin(), narrow.end(), std::back_inserter(*wanted->vector), kernels::to_float);
      }
    }
  }
  if (!progress(done, weights.bytes)) return stopped;
  return weights;
}

}  // namespace troika::native
