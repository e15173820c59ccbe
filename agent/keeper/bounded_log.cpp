#include "agent/keeper/bounded_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace troika::keeper {

BoundedLog::BoundedLog(const RunDirectory& directory, Bytes limit)
    : directory_(directory), share_(std::max<std::uint64_t>(limit.count / 2, 4096)) {
  open();
}

void BoundedLog::open() {
  fd_.reset(::openat(directory_.fd(), kLogFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  struct stat facts {};
  size_ = fd_ && ::fstat(fd_.get(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

void BoundedLog::rotate() {
  if (::renameat(directory_.fd(), kLogFile, directory_.fd(), kOldLogFile) != 0) {
    // Without a second name the limit still holds: the file begins anew.
    if (::ftruncate(fd_.get(), 0) == 0) size_ = 0;
    return;
  }
  open();
}

void BoundedLog::append(std::string_view output) {
  while (!output.empty()) {
    if (fd_ && size_ >= share_) rotate();
    if (!fd_) open();
    const std::uint64_t room = size_ < share_ ? share_ - size_ : 0;
    const std::size_t part = std::min<std::uint64_t>(output.size(), room);
    const ssize_t done = fd_ && part > 0 ? ::write(fd_.get(), output.data(), part) : -1;
    if (done < 0 && fd_ && part > 0 && errno == EINTR) continue;
    if (done <= 0) {
      lost_ += output.size();
      return;
    }
    size_ += static_cast<std::uint64_t>(done);
    written_ += static_cast<std::uint64_t>(done);
    output.remove_prefix(static_cast<std::size_t>(done));
  }
}

}  // namespace troika::keeper
