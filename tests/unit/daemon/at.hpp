// A wall time of the tests.
#pragma once

#include <cstdint>

#include "vocabulary/units.hpp"

namespace troika::daemon {

inline WallTime at(std::int64_t ms) {
  return WallTime{std::chrono::milliseconds{ms}};
}

}  // namespace troika::daemon
