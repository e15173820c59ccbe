// Routed experts in NVFP4: their tensors, and what engines need in config.json to load them as such. Mode 6:
// without those fields the packed bytes are taken for another format, and the answers are garbage.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/safetensors/header.hpp"
#include "vocabulary/finding.hpp"

namespace troika::model {

// A linear layer `....experts.N.NAME` has four tensors: `weight` U8 [out, in / 2] (two values a byte),
// `weight_scale` F8_E4M3 [out, in / group_size], `weight_scale_2` and `input_scale` F32 scalars ([] or [1]).
// Experts in other formats (the MTP layers' stay MXFP4) are left alone.
class Nvfp4Experts {
 public:
  void add(const safetensors::Header& header);

  // QUANT_CONFIG, one for each kind of fault. `config`: the text of config.json; nothing: the model has none.
  // `complete`: no shard is missing or bad, so that a tensor that is not here is nowhere.
  std::vector<Finding> check(const std::optional<std::string>& config, bool complete) const;

 private:
  enum Part : std::uint8_t { Weight, Scale, Scale2, InputScale };
  static constexpr std::size_t kParts = 4;

  struct Described {
    bool there = false;
    safetensors::Dtype dtype{};
    std::size_t dimensions = 0;
    std::array<std::uint64_t, 2> shape{};  // the first two

    bool scalar() const { return dimensions == 0 || (dimensions == 1 && shape[0] == 1); }
  };
  using Linear = std::array<Described, kParts>;
  struct Claim;
  struct Faults;

  static std::optional<Part> part_of(std::string_view suffix);
  static bool quantized(const Linear& linear, bool claimed);
  static void judge(std::string_view name, const Linear& linear, const Claim& claim, bool complete,
                    Faults& faults);
  std::vector<Finding> contradicted(const Claim& claim) const;

  safetensors::NameTable names_;  // of the linear layers of experts
  std::vector<Linear> linears_;   // by the name's number
  bool anywhere_ = false;         // some weight_scale_2, of an expert or not
};

}  // namespace troika::model
