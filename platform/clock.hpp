// The one place that reads a clock.
#pragma once

#include <string>

#include "vocabulary/units.hpp"

namespace troika::platform {

Instant now();  // CLOCK_BOOTTIME
double seconds_since(Instant begin);
WallTime wall_now();    // for people and records
std::string boot_id();  // /proc/sys/kernel/random/boot_id, without the newline; empty where it cannot be read

}  // namespace troika::platform
