#include "agent/model/file_reader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace troika::model {
namespace {

Duration duration_of(const timespec& time) {
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

FileStamp stamp_from(const struct stat& facts) {
  return {static_cast<std::uint64_t>(facts.st_dev), static_cast<std::uint64_t>(facts.st_ino),
          static_cast<std::uint64_t>(facts.st_size), duration_of(facts.st_mtim), duration_of(facts.st_ctim)};
}

policies::FileSystem file_system_from(const struct statfs& facts) {
  std::uint32_t id[2];  // fsid_t hides its two numbers
  static_assert(sizeof id == sizeof facts.f_fsid);
  std::memcpy(id, &facts.f_fsid, sizeof id);
  // A magic number has 32 bits; f_type is signed and wider.
  return {std::uint64_t{id[0]} << 32 | id[1], static_cast<std::uint32_t>(facts.f_type)};
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

// To all others mincore says that every page is cached.
bool may_ask_what_is_cached(const std::string& path, unsigned owner) {
  const auto me = ::geteuid();
  return me == 0 || me == owner || ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

}  // namespace

Result<FileStamp> stamp_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return system_error("look at", path, errno);
  return stamp_from(facts);
}

Result<policies::FileSystem> file_system_of(const std::string& path) {
  struct statfs facts {};
  if (::statfs(path.c_str(), &facts) != 0) return system_error("look at", path, errno);
  return file_system_from(facts);
}

FileReader::FileReader(std::string path, platform::UniqueFd fd, FileStamp stamp, unsigned owner)
    : path_(std::move(path)), fd_(std::move(fd)), stamp_(stamp) {
  direct_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (direct_) {
    // The name may have changed hands between the two opens.
    struct stat facts {};
    if (::fstat(direct_.get(), &facts) != 0 || facts.st_ino != stamp_.inode || facts.st_dev != stamp_.device)
      direct_.reset();
  }
  if (stamp_.bytes > 0 && may_ask_what_is_cached(path_, owner)) {
    map_ = ::mmap(nullptr, stamp_.bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd_.get(), 0);
    if (map_ == MAP_FAILED) map_ = nullptr;
  }
}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::move(other.fd_)),
      direct_(std::move(other.direct_)),
      stamp_(other.stamp_),
      map_(std::exchange(other.map_, nullptr)) {}

FileReader& FileReader::operator=(FileReader&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(direct_, other.direct_);
  std::swap(stamp_, other.stamp_);
  std::swap(map_, other.map_);
  return *this;
}

FileReader::~FileReader() {
  if (map_ != nullptr) ::munmap(map_, stamp_.bytes);
}

Result<FileReader> FileReader::open(const std::string& path) {
  // O_NONBLOCK: a pipe under the name of a shard must not hold the proof up.
  platform::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (!fd && errno == ENXIO) return Error{"read", path, "not a regular file"};  // a socket
  if (!fd) return system_error("open", path, errno);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return system_error("look at", path, errno);
  if (!S_ISREG(facts.st_mode)) return Error{"read", path, "not a regular file"};
  return FileReader{path, std::move(fd), stamp_from(facts), facts.st_uid};
}

Result<FileStamp> FileReader::stamp_now() const {
  return stamp_of(path_);
}

policies::FileSystem FileReader::file_system() const {
  struct statfs facts {};
  return ::fstatfs(fd_.get(), &facts) == 0 ? file_system_from(facts) : policies::FileSystem{};
}

policies::Writers FileReader::writers() const {
  // The kernel gives a read lease only while nobody has the file open for writing. Who opens it so while we
  // have the lease, for some microseconds, is held until we give it back; we are told by a signal, which must
  // not be the usual SIGIO: that ends a process. SIGURG is ignored.
  if (::fcntl(fd_.get(), F_SETSIG, SIGURG) != 0) return policies::Writers::CannotTell;
  if (::fcntl(fd_.get(), F_SETLEASE, F_RDLCK) == 0) {
    ::fcntl(fd_.get(), F_SETLEASE, F_UNLCK);
    return policies::Writers::None;
  }
  return errno == EAGAIN ? policies::Writers::Some : policies::Writers::CannotTell;
}

bool FileReader::sync(const std::atomic<bool>& cancel) const {
  // A file just fetched may have gigabytes to go: in pieces, so that cancelling does not wait for all.
  constexpr std::uint64_t kPiece = 64u << 20;
  constexpr unsigned kWrittenNow =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (std::uint64_t at = 0; at < stamp_.bytes; at += kPiece) {
    if (cancel.load()) return false;
    if (::sync_file_range(fd_.get(), static_cast<off64_t>(at), kPiece, kWrittenNow) != 0) break;
  }
  return ::fsync(fd_.get()) == 0;
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
  if (map_ == nullptr || offset >= stamp_.bytes) return 0;
  const std::size_t wanted = std::min<std::uint64_t>(bytes, stamp_.bytes - offset);
  std::array<unsigned char, 512> pages;  // 2 MiB
  const std::size_t count = (wanted + kReadAlignment - 1) / kReadAlignment;
  if (count > pages.size() || ::mincore(static_cast<char*>(map_) + offset, wanted, pages.data()) != 0)
    return 0;
  const auto end = pages.begin() + static_cast<std::ptrdiff_t>(count);
  if (!std::all_of(pages.begin(), end, [](unsigned char page) { return (page & 1) != 0; })) return 0;
  const ssize_t got = read_fully(fd_.get(), buffer, wanted, offset);
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
