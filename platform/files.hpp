// Small files, written so that a crash at any instant leaves the old content or the new one.
#pragma once

#include <string>
#include <string_view>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::platform {

// Refuses files over `limit` and anything that is not a regular file.
Result<std::string> read_file(const std::string& path, Bytes limit);
// Temporary file beside it, fsync, rename, fsync of the folder. mode: permission bits of the new file.
Status write_file_durably(const std::string& path, std::string_view content, unsigned mode = 0644);
// The same for a file that must not exist yet: an error, and the existing file untouched, if it does.
Status create_file_durably(const std::string& path, std::string_view content, unsigned mode = 0644);
// With parents; an existing directory is fine.
Status make_directories(const std::string& path, unsigned mode = 0755);
// Depth first, following no link; a path that is not there is fine.
Status remove_tree(const std::string& path);
// `bytes` random bytes of the kernel as lower-case hex.
std::string random_hex(std::size_t bytes);

// An exclusive lock on a file for the life of the object (flock): one process of a kind in one state
// directory.
class DirectoryLock {
 public:
  // Error "held by pid N" when another process has it.
  static Result<DirectoryLock> take(const std::string& path);
  DirectoryLock(DirectoryLock&&) noexcept;
  DirectoryLock& operator=(DirectoryLock&&) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace troika::platform
