#include "platform/clock.hpp"

#include <time.h>

#include "platform/files.hpp"

namespace troika::platform {
namespace {

Duration read_clock(clockid_t id) {
  timespec time{};
  TROIKA_INVARIANT(::clock_gettime(id, &time) == 0);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

}  // namespace

Instant now() {
  return Instant{read_clock(CLOCK_BOOTTIME)};
}

double seconds_since(Instant begin) {
  return std::chrono::duration<double>(now() - begin).count();
}

WallTime wall_now() {
  return WallTime{std::chrono::duration_cast<std::chrono::milliseconds>(read_clock(CLOCK_REALTIME))};
}

std::string boot_id() {
  constexpr Bytes kLimit{256};  // a UUID and a newline
  auto text = read_file("/proc/sys/kernel/random/boot_id", kLimit);
  if (!text.ok()) return {};
  while (!text->empty() && text->back() == '\n')
    text->pop_back();
  return *std::move(text);
}

}  // namespace troika::platform
