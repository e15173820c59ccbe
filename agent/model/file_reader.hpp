// The bytes of one regular file. What lies in the page cache already is taken from there, everything else is
// read past it, so that a proof of 168 GB leaves the cache as it was.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "platform/unique_fd.hpp"
#include "policies/remembered.hpp"
#include "vocabulary/result.hpp"

namespace troika::model {

using policies::FileStamp;
Result<FileStamp> stamp_of(const std::string& path);
Result<policies::FileSystem> file_system_of(const std::string& path);

// What a direct read wants of its buffer, offset and size.
inline constexpr std::size_t kReadAlignment = 4096;

struct FreeAligned {
  void operator()(char* memory) const { ::operator delete[](memory, std::align_val_t{kReadAlignment}); }
};
using AlignedBytes = std::unique_ptr<char[], FreeAligned>;
inline AlignedBytes aligned_bytes(std::size_t size) {
  return AlignedBytes{new (std::align_val_t{kReadAlignment}) char[size]};
}

class FileReader {
 public:
  // Follows links. A thing that is not a regular file is an error with reason "not a regular file".
  static Result<FileReader> open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) noexcept;
  ~FileReader();

  const FileStamp& stamp() const { return stamp_; }
  Result<FileStamp> stamp_now() const;
  policies::FileSystem file_system() const;  // type 0 where it cannot be told
  // Whether a process has the file open for writing, or mapped so, at this moment.
  policies::Writers writers() const;
  // Waits until what was written to the file is on the disk. False: that failed, or was cancelled.
  bool sync(const std::atomic<bool>& cancel) const;

  // Any part, through the cache: for headers.
  Result<std::string> read_at(std::uint64_t offset, std::size_t bytes) const;
  // All of the wanted bytes if they lie in the page cache, at once; else 0 and nothing is read. Always 0
  // where the kernel does not tell us what is cached: it tells the file's owner and those who may write to
  // it.
  std::size_t read_cached(std::uint64_t offset, char* buffer, std::size_t bytes) const;
  // The wanted bytes, past the page cache: how many came, fewer only at the file's end. All three are
  // multiples of kReadAlignment.
  Result<std::size_t> read_past_cache(std::uint64_t offset, char* buffer, std::size_t bytes);

 private:
  FileReader(std::string path, platform::UniqueFd fd, FileStamp stamp, unsigned owner);

  std::string path_;
  platform::UniqueFd fd_;
  platform::UniqueFd direct_;  // O_DIRECT; none where the file system lacks it
  FileStamp stamp_;
  void* map_ = nullptr;  // never touched: only asked which of its pages are in memory
};

}  // namespace troika::model
