// The layer partition of a pipeline: how many layers each rank runs. Pure. Modes 55, 70.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vocabulary/finding.hpp"
#include "vocabulary/names.hpp"
#include "vocabulary/units.hpp"

namespace troika::policies {

// As SGLang divides when it is not told: equal shares, the remainder one each to the last ranks (43 over 3:
// 14, 14, 15). Empty where there are no ranks or fewer layers than ranks.
std::vector<std::uint32_t> default_partition(std::uint32_t model_layers, std::size_t ranks);

// The layers of a rank: [sum before it, that + its own). The rank must be one of them.
LayerRange layer_range(const std::vector<std::uint32_t>& layers, Rank rank);

// PARTITION_MISMATCH for each of: not one entry a node, an entry of zero, a sum that is not the model's
// layers.
std::vector<Finding> check_partition(const std::string& replica, const std::vector<std::uint32_t>& layers,
                                     std::size_t nodes, std::uint32_t model_layers);

// MICRO_BATCH_ONE where max_running // ranks leaves a micro-batch of one request or none while prefill is
// chunked (hangs; 8 over 3 ranks is fine). One rank has no pipeline and is never at fault.
std::vector<Finding> check_micro_batch(std::uint32_t max_running, std::size_t ranks, Tokens chunked_prefill);

}  // namespace troika::policies
