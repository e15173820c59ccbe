#include "policies/partition.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "policies/line.hpp"
#include "vocabulary/result.hpp"

namespace troika::policies {
namespace {

std::uint64_t sum(const std::vector<std::uint32_t>& layers) {
  return std::accumulate(layers.begin(), layers.end(), std::uint64_t{0});
}

}  // namespace

std::vector<std::uint32_t> default_partition(std::uint32_t model_layers, std::size_t ranks) {
  if (ranks == 0 || ranks > model_layers) return {};
  const auto share = static_cast<std::uint32_t>(model_layers / ranks);
  std::vector<std::uint32_t> layers(ranks, share);
  const std::size_t remainder = model_layers % ranks;
  for (std::size_t rank = ranks - remainder; rank < ranks; ++rank)
    ++layers[rank];
  return layers;
}

LayerRange layer_range(const std::vector<std::uint32_t>& layers, Rank rank) {
  TROIKA_INVARIANT(rank.count < layers.size());
  LayerRange range;
  for (std::uint32_t r = 0; r < rank.count; ++r)
    range.begin += layers[r];
  range.end = range.begin + layers[rank.count];
  return range;
}

std::vector<Finding> check_partition(const std::string& replica, const std::vector<std::uint32_t>& layers,
                                     std::size_t nodes, std::uint32_t model_layers) {
  std::vector<Finding> findings;
  const std::string subject = line(replica, ".layers");
  const std::vector<std::uint32_t> fit = default_partition(model_layers, nodes);
  const std::string remedy = fit.empty() ? std::string("Use no more nodes than the model has layers.")
                                         : line("For example ", listed(fit), ".");
  const auto bad = [&](std::string message) {
    findings.push_back(finding(Code::PARTITION_MISMATCH, {}, subject, std::move(message), remedy));
  };
  if (layers.size() != nodes)
    bad(line(listed(layers), " has ", layers.size(), " entries for ", nodes, " nodes"));
  for (std::size_t rank = 0; rank < layers.size(); ++rank)
    if (layers[rank] == 0) bad(line("rank ", rank, " would run no layer"));
  if (sum(layers) != model_layers)
    bad(line(listed(layers), " adds up to ", sum(layers), " layers, the model has ", model_layers));
  return findings;
}

std::vector<Finding> check_micro_batch(std::uint32_t max_running, std::size_t ranks, Tokens chunked_prefill) {
  if (ranks < 2 || chunked_prefill.count == 0 || max_running / ranks > 1) return {};
  return {finding(Code::MICRO_BATCH_ONE, {}, "engine.max_running",
                  line("max_running ", max_running, " over ", ranks, " ranks leaves ", max_running / ranks,
                       " requests a micro-batch, with which chunked prefill hangs"),
                  line("Set max_running to ", 2 * ranks, " or more."),
                  {{"max_running", std::int64_t{max_running}}, {"ranks", static_cast<std::int64_t>(ranks)}})};
}

}  // namespace troika::policies
