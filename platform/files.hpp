// Small files, written so that a crash at any instant leaves the old content or the new one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
// Names in a directory, sorted, without "." and "..": all of them, at most 1,000,000, or an error.
enum class Absent { Refused, Empty };  // a directory that is not there, or is none: an error, or no names
Result<std::vector<std::string>> list_directory(const std::string& path, Absent absent = Absent::Refused);
// Of the file system that holds `path`, for users that are not root.
Result<Bytes> free_space(const std::string& path);
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
