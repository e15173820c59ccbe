// Which serving replica gets the next request. Pure; the gateway calls it for every request that it is about
// to pass on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troika::policies {

// The positions of the route's targets in the order in which they are tried: the next is used where one
// cannot be reached. `in_flight`: requests passed to each and not ended.
//   Not `spread` (active-standby): as the leader ordered them.
//   `spread` (active-active): the fewest in flight first; among equals they take turns, `turn` counts the
//   requests.
std::vector<std::size_t> order_of_targets(std::span<const std::uint32_t> in_flight, bool spread,
                                          std::uint64_t turn);

}  // namespace troika::policies
