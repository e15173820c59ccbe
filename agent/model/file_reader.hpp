// Reads a file from its beginning to its end without pushing anything out of the page cache, and without
// filling it: what is cached is read from there, what is not is read past it. Modes 30 and 66: hashing 168 GB
// must not make the next engine believe that memory is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "platform/unique_fd.hpp"
#include "vocabulary/result.hpp"

namespace troika::model {

// What tells whether a file is still the one that was opened.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

class FileReader {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kBlock = 4u << 20;

  // Follows links. A thing that is not a regular file is an error with reason "not a regular file".
  static Result<FileReader> open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;
  ~FileReader();

  const FileStamp& stamp() const { return stamp_; }
  Result<FileStamp> stamp_now() const;

  // Any part, through the cache: for headers.
  Result<std::string> read_at(std::uint64_t offset, std::size_t bytes) const;
  // Block `index` of kBlock bytes into `buffer` (aligned to 4096, kBlock long): how many bytes came, fewer
  // only at the file's end.
  Result<std::size_t> read_block(std::uint64_t index, char* buffer);

 private:
  FileReader(std::string path, platform::UniqueFd fd, FileStamp stamp);
  bool cached(std::uint64_t offset, std::size_t bytes) const;

  std::string path_;
  platform::UniqueFd fd_;
  platform::UniqueFd direct_;  // O_DIRECT; none where the file system lacks it
  FileStamp stamp_;
  void* map_ = nullptr;  // never touched: only asked which of its pages are in memory
};

}  // namespace troika::model
