// How much memory this process has in RAM.
#pragma once

#include <cstdint>

namespace troika::daemon::gateway {

// Bytes, from /proc/self/statm; 0 where it cannot be read.
std::uint64_t resident_bytes();

}  // namespace troika::daemon::gateway
