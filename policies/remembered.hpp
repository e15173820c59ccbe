// When a digest that was taken once may stand for a file's bytes without reading them again. Pure.
//
// A file's stamp (stat) tells whether it was written to since, but for four ways in which it does not:
// a second write within the same tick of the kernel's clock; a clock that was set back to that tick; a writer
// that had the file mapped before (its later stores leave the times alone); bytes that were never on the disk
// and are lost with the power (mode 9). Each has its rule here.
#pragma once

#include <cstdint>
#include <string>

#include "vocabulary/units.hpp"

namespace troika::policies {

// Of stat: tells whether a file is still the one that was opened.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  Duration modified{};  // since 1970, the file system's clock
  Duration changed{};

  bool operator==(const FileStamp&) const = default;
};

// Of statfs: numbers of devices and inodes are used again by other file systems.
struct FileSystem {
  std::uint64_t id = 0;    // f_fsid
  std::uint64_t type = 0;  // f_type, the magic number of linux/magic.h

  bool operator==(const FileSystem&) const = default;
};

struct ClockReading {
  Duration wall{};  // since 1970
  Duration boot{};  // since boot, suspended time included
  std::string boot_id;
};

enum class Writers { None, Some, CannotTell };

// One reading of a whole file.
struct WholeRead {
  FileStamp stamp;  // the same before and after
  FileSystem file_system;
  Writers writers = Writers::CannotTell;  // before the first byte was read: who had it open for writing
  bool on_disk = false;                   // everything that was read has been synced
  ClockReading begin;
  ClockReading end;
};

enum class Remember {
  Yes,
  ChangedJustNow,  // less than kSettled before it was read, or in the future by this clock
  OpenForWriting,
  WritersUnknown,
  NotOnDisk,
  OtherFileSystem,  // one whose stamps do not tell every change: a network's, FUSE, memory
  ClockJumped,      // while it was read
};
// kSettled: the coarsest clock of a local file system (2 s, FAT; ext3 1 s) and one more.
inline constexpr Duration kSettled = std::chrono::seconds{3};
Remember may_remember(const WholeRead& read);
const char* text(Remember why);  // "it changed just before it was read", for a sentence about the file

// A digest that was remembered, and the state of the file and the clocks then.
struct Remembered {
  FileStamp stamp;
  FileSystem file_system;
  ClockReading proven;  // when reading ended
  std::string sha256;
  std::string git_sha1;  // empty: not taken
};
// Does it still stand for the bytes of the file that has this stamp now? `most_age` 0: any age.
bool still_counts(const Remembered& record, const FileStamp& stamp, const FileSystem& file_system,
                  const ClockReading& now, Duration most_age);

}  // namespace troika::policies
