// Model directories: copies that share blocks where the file system can, space, and damage on purpose.
#pragma once

#include <cstdint>
#include <string>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::local {

struct CopyFacts {
  std::uint32_t files = 0;
  std::uint32_t reflinked = 0;  // share their blocks with the original until one of them is written
  Bytes bytes;
};

// The regular files of a flat directory, into a new directory.
Result<CopyFacts> copy_directory(const std::string& from, const std::string& to);
// Inverts one byte of the file, written through to the disk. Twice is once back.
Status flip_byte(const std::string& path, std::uint64_t offset);
Result<Bytes> file_size(const std::string& path);

}  // namespace troika::local
