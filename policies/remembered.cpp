#include "policies/remembered.hpp"

#include <algorithm>
#include <array>

namespace troika::policies {
namespace {

// A clock is disciplined by less than this between two readings; a step is more. chrony and ntpd step from
// 0.1 s on at boot, and slewing moves both of our clocks alike.
constexpr Duration kClockMoves = std::chrono::seconds{1};

// linux/magic.h, and those of zfs and bcachefs, which are not in it. tmpfs is none of them: a store into a
// mapping of it leaves the times alone.
constexpr std::array<std::uint64_t, 7> kStampsTell{
    0xEF53,      // ext4
    0x58465342,  // xfs
    0x9123683E,  // btrfs
    0xF2F52010,  // f2fs
    0x794C7630,  // overlayfs: the stamps of the file below
    0x2FC12FC1,  // zfs
    0xCA451A4E,  // bcachefs
};

// Only within one boot: the other clock begins at 0 with each.
bool jumped(const ClockReading& from, const ClockReading& to) {
  const Duration moved = (to.wall - to.boot) - (from.wall - from.boot);
  return moved > kClockMoves || moved < -kClockMoves;
}

}  // namespace

Remember may_remember(const WholeRead& read) {
  if (std::find(kStampsTell.begin(), kStampsTell.end(), read.file_system.type) == kStampsTell.end())
    return Remember::OtherFileSystem;
  if (read.begin.boot_id.empty() || read.begin.boot_id != read.end.boot_id || jumped(read.begin, read.end))
    return Remember::ClockJumped;
  if (std::max(read.stamp.modified, read.stamp.changed) > read.begin.wall - kSettled)
    return Remember::ChangedJustNow;
  if (read.writers == Writers::Some) return Remember::OpenForWriting;
  if (read.writers == Writers::CannotTell) return Remember::WritersUnknown;
  return read.on_disk ? Remember::Yes : Remember::NotOnDisk;
}

const char* text(Remember why) {
  switch (why) {
    case Remember::Yes:
      return "it is remembered";
    case Remember::ChangedJustNow:
      return "it changed less than 3 s before it was read, or in the future";
    case Remember::OpenForWriting:
      return "a process has it open for writing";
    case Remember::WritersUnknown:
      return "only its owner and root are told whether a process has it open for writing";
    case Remember::NotOnDisk:
      return "it could not be synced to the disk";
    case Remember::OtherFileSystem:
      return "its file system does not tell every change (only local disks do)";
    case Remember::ClockJumped:
      return "the clock was set while it was read";
  }
  return "?";
}

bool still_counts(const Remembered& record, const FileStamp& stamp, const FileSystem& file_system,
                  const ClockReading& now, Duration most_age) {
  if (!(record.stamp == stamp) || !(record.file_system == file_system)) return false;
  if (std::max(stamp.modified, stamp.changed) > record.proven.wall - kSettled) return false;
  if (now.wall < record.proven.wall || now.boot_id.empty()) return false;
  if (now.boot_id == record.proven.boot_id && jumped(record.proven, now)) return false;
  return most_age == Duration{} || now.wall - record.proven.wall <= most_age;
}

}  // namespace troika::policies
