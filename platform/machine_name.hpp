// A name that one process of this machine holds at a time. It is an abstract Unix socket: nothing is on disk,
// and the kernel frees it however the process ends. Seen within one network namespace.
#pragma once

#include <string>

#include "platform/unique_fd.hpp"
#include "vocabulary/result.hpp"

namespace troika::platform {

class MachineName {
 public:
  // Of any length: what is beyond 100 bytes goes in as a hash. Error "held by pid N" when another process has
  // it.
  static Result<MachineName> take(const std::string& name);

 private:
  explicit MachineName(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace troika::platform
