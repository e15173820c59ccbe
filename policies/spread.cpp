#include "policies/spread.hpp"

#include <algorithm>
#include <numeric>

namespace troika::policies {

std::vector<std::size_t> order_of_targets(std::span<const std::uint32_t> in_flight, bool spread,
                                          std::uint64_t turn) {
  std::vector<std::size_t> order(in_flight.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!spread || order.size() < 2) return order;
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(turn % order.size()), order.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return in_flight[a] < in_flight[b]; });
  return order;
}

}  // namespace troika::policies
