#include "daemon/gateway/resident.hpp"

#include <unistd.h>

#include <cstdlib>

#include "platform/files.hpp"

namespace troika::daemon::gateway {

std::uint64_t resident_bytes() {
  const auto text = platform::read_file("/proc/self/statm", Bytes{4096});
  if (!text.ok()) return 0;
  const auto space = text->find(' ');
  if (space == std::string::npos) return 0;
  const auto pages = std::strtoull(text->c_str() + space, nullptr, 10);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace troika::daemon::gateway
