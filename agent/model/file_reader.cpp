#include "agent/model/file_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace troika::model {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

FileStamp stamp_of(const struct stat& facts) {
  return {static_cast<std::uint64_t>(facts.st_dev), static_cast<std::uint64_t>(facts.st_ino),
          static_cast<std::uint64_t>(facts.st_size), nanoseconds(facts.st_mtim), nanoseconds(facts.st_ctim)};
}

// As much as there is of the wanted bytes.
ssize_t read_fully(int fd, char* buffer, std::size_t bytes, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd, buffer + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
    // A direct read that came short ended at the file's end; going on from there would not be aligned.
    if (done % kReadAlignment != 0) break;
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

FileReader::FileReader(std::string path, platform::UniqueFd fd, FileStamp stamp)
    : path_(std::move(path)), fd_(std::move(fd)), stamp_(stamp) {
  direct_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (direct_) {
    // The name may have changed hands between the two opens.
    struct stat facts {};
    if (::fstat(direct_.get(), &facts) != 0 || facts.st_ino != stamp_.inode || facts.st_dev != stamp_.device)
      direct_.reset();
  }
}

Result<FileReader> FileReader::open(const std::string& path) {
  // O_NONBLOCK: a pipe under the name of a shard must not hold the proof up.
  platform::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (!fd) return system_error("open", path, errno);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return system_error("look at", path, errno);
  if (!S_ISREG(facts.st_mode)) return Error{"read", path, "not a regular file"};
  return FileReader{path, std::move(fd), stamp_of(facts)};
}

Result<FileStamp> FileReader::stamp_now() const {
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) != 0) return system_error("look at", path_, errno);
  return stamp_of(facts);
}

Result<std::string> FileReader::read_at(std::uint64_t offset, std::size_t bytes) const {
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(fd_.get(), text.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", path_, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

std::size_t FileReader::read_cached(std::uint64_t offset, char* buffer, std::size_t bytes) const {
  if (offset >= stamp_.bytes) return 0;
  const std::size_t wanted = std::min<std::uint64_t>(bytes, stamp_.bytes - offset);
  iovec part{buffer, wanted};
  const ssize_t got = ::preadv2(fd_.get(), &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  return got == static_cast<ssize_t>(wanted) ? wanted : 0;
}

Result<std::size_t> FileReader::read_past_cache(std::uint64_t offset, char* buffer, std::size_t bytes) {
  if (direct_) {
    const ssize_t got = read_fully(direct_.get(), buffer, bytes, offset);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINVAL) return system_error("read", path_, errno);
    direct_.reset();  // the file system takes the flag and not the read
  }
  const ssize_t got = read_fully(fd_.get(), buffer, bytes, offset);
  if (got < 0) return system_error("read", path_, errno);
  // It was not in the cache before (read_cached).
  ::posix_fadvise(fd_.get(), static_cast<off_t>(offset), got, POSIX_FADV_DONTNEED);
  return static_cast<std::size_t>(got);
}

}  // namespace troika::model
