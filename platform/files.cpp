#include "platform/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>
#include <vector>

namespace troika::platform {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  Fd& operator=(Fd&&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Fd open_at(int directory, const std::string& path, int flags, unsigned mode = 0) {
  while (true) {
    const int fd = ::openat(directory, path.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EINTR) return Fd{fd};
  }
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error("write", path, errno);
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return Done{};
}

Status sync_directory(const std::string& directory) {
  const Fd fd = open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return system_error("open the folder", directory, errno);
  // Some file systems cannot sync a folder (EINVAL); then there is nothing to wait for.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return system_error("sync the folder", directory, errno);
  return Done{};
}

// A complete, synced file under a random name beside `path`.
Result<std::string> write_beside(const std::string& path, std::string_view content, unsigned mode) {
  constexpr std::size_t kSuffixBytes = 8;
  const std::string temporary = path + ".tmp-" + random_hex(kSuffixBytes);
  const Fd fd = open_at(AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  if (!fd.ok()) return system_error("create", path, errno);
  Status status = write_all(fd.get(), content, path);
  // The mode given to open is cut by the umask.
  if (status.ok() && ::fchmod(fd.get(), mode) != 0) status = system_error("set the mode of", path, errno);
  if (status.ok() && ::fsync(fd.get()) != 0) status = system_error("sync", path, errno);
  if (status.ok()) return temporary;
  ::unlink(temporary.c_str());
  return status.error();
}

Status remove_at(int directory, const std::string& name, const std::string& path);

Status remove_children(Fd folder, const std::string& path) {
  const int fd = folder.get();
  DIR* const entries = ::fdopendir(fd);
  if (entries == nullptr) return system_error("list", path, errno);
  folder.release();  // closedir closes it
  Status status = Done{};
  while (status.ok()) {
    errno = 0;
    const dirent* const entry = ::readdir(entries);
    if (entry == nullptr) {
      if (errno != 0) status = system_error("list", path, errno);
      break;
    }
    const std::string name = entry->d_name;
    if (name != "." && name != "..") status = remove_at(fd, name, path + "/" + name);
  }
  ::closedir(entries);
  return status;
}

Status remove_at(int directory, const std::string& name, const std::string& path) {
  if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return Done{};
  if (errno != EISDIR && errno != EPERM) return system_error("remove", path, errno);
  const int unlink_errno = errno;
  Fd folder = open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder.ok()) return system_error("remove", path, errno == ENOTDIR ? unlink_errno : errno);
  TROIKA_CHECK(remove_children(std::move(folder), path));
  if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return Done{};
  return system_error("remove the folder", path, errno);
}

}  // namespace

Result<std::string> read_file(const std::string& path, Bytes limit) {
  // Without O_NONBLOCK, opening a FIFO would wait for its writer.
  const Fd fd = open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd.ok()) return system_error("open", path, errno);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return system_error("look at", path, errno);
  if (!S_ISREG(facts.st_mode)) return Error{"read", path, "not a regular file"};
  const auto too_long = [&] {
    return Error{"read", path, "longer than the " + std::to_string(limit.count) + " bytes allowed"};
  };
  if (static_cast<std::uint64_t>(facts.st_size) > limit.count) return too_long();
  std::string content;
  constexpr std::size_t kChunk = 64u << 10;
  std::vector<char> chunk(kChunk);
  while (true) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0) {
      if (errno == EINTR) continue;
      return system_error("read", path, errno);
    }
    if (got == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(got));
    // Files of /proc tell no size, and a file may grow while it is read.
    if (content.size() > limit.count) return too_long();
  }
}

Status write_file_durably(const std::string& path, std::string_view content, unsigned mode) {
  TROIKA_TRY(temporary, write_beside(path, content, mode));
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = system_error("replace", path, errno);
    ::unlink(temporary.c_str());
    return error;
  }
  return sync_directory(parent_of(path));
}

Status create_file_durably(const std::string& path, std::string_view content, unsigned mode) {
  TROIKA_TRY(temporary, write_beside(path, content, mode));
  // link, unlike rename, never replaces.
  const int linked = ::link(temporary.c_str(), path.c_str());
  const int link_errno = errno;
  ::unlink(temporary.c_str());
  if (linked != 0) return system_error("create", path, link_errno);
  return sync_directory(parent_of(path));
}

Status make_directories(const std::string& path, unsigned mode) {
  for (std::size_t end = path.find('/', 1); true; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (!part.empty() && ::mkdir(part.c_str(), mode) != 0) {
      const int mkdir_errno = errno;
      struct stat facts {};
      if (::stat(part.c_str(), &facts) != 0) return system_error("make the folder", part, mkdir_errno);
      if (!S_ISDIR(facts.st_mode)) return system_error("make the folder", part, ENOTDIR);
    }
    if (end == std::string::npos) return Done{};
  }
}

Status remove_tree(const std::string& path) {
  return remove_at(AT_FDCWD, path, path);
}

Result<std::vector<std::string>> list_directory(const std::string& path, Absent absent) {
  constexpr std::size_t kMostNames = 1'000'000;
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open{::opendir(path.c_str()), ::closedir};
  if (!open) {
    if (absent == Absent::Empty && (errno == ENOENT || errno == ENOTDIR)) return names;
    return system_error("list", path, errno);
  }
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr) {
      if (errno != 0) return system_error("list", path, errno);
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() == kMostNames) return Error{"list", path, "more than 1000000 names"};
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<Bytes> free_space(const std::string& path) {
  struct statvfs facts {};
  if (::statvfs(path.c_str(), &facts) != 0) return system_error("look at the free space of", path, errno);
  return Bytes{static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize};
}

std::string random_hex(std::size_t bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::vector<unsigned char> raw(bytes);
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t more = ::getrandom(raw.data() + got, bytes - got, 0);
    if (more < 0) {
      TROIKA_INVARIANT(errno == EINTR);
      continue;
    }
    got += static_cast<std::size_t>(more);
  }
  std::string text;
  text.reserve(2 * bytes);
  for (const unsigned char c : raw) {
    text += kHex[c >> 4];
    text += kHex[c & 15];
  }
  return text;
}

Result<DirectoryLock> DirectoryLock::take(const std::string& path) {
  Fd fd = open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!fd.ok()) return system_error("open the lock", path, errno);
  int locked = -1;
  do {
    locked = ::flock(fd.get(), LOCK_EX | LOCK_NB);
  } while (locked != 0 && errno == EINTR);
  if (locked != 0) {
    if (errno != EWOULDBLOCK) return system_error("take the lock", path, errno);
    char text[24] = {};
    const ssize_t got = ::pread(fd.get(), text, sizeof text - 1, 0);
    std::int64_t pid = 0;
    const bool known = got > 0 && std::from_chars(text, text + got, pid).ec == std::errc{};
    return Error{"take the lock", path,
                 known ? "held by pid " + std::to_string(pid) : "held by another process"};
  }
  // The pid is for the message above only; a full disk must not keep a daemon from starting.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(fd.get(), pid.data(), pid.size(), 0);
  }
  return DirectoryLock{fd.release()};
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace troika::platform
