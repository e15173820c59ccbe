#include "cli/local/copy.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "platform/files.hpp"
#include "platform/unique_fd.hpp"

namespace troika::local {
namespace {

using platform::UniqueFd;

// Where copy_file_range is not possible (across file systems on old kernels).
Status copy_by_hand(int from, int to, const std::string& name) {
  char buffer[1u << 16];
  while (true) {
    const ssize_t got = ::read(from, buffer, sizeof buffer);
    if (got < 0) return system_error("read", name, errno);
    if (got == 0) return Done{};
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::write(to, buffer + done, static_cast<std::size_t>(got - done));
      if (put < 0) return system_error("copy", name, errno);
      done += put;
    }
  }
}

// True: by reflink.
Result<bool> copy_file(const std::string& from, const std::string& to, std::uint64_t bytes) {
  const UniqueFd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source) return system_error("open", from, errno);
  const UniqueFd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!target) return system_error("create", to, errno);
  if (::ioctl(target.get(), FICLONE, source.get()) == 0) return true;
  std::uint64_t left = bytes;
  while (left > 0) {
    const ssize_t moved = ::copy_file_range(source.get(), nullptr, target.get(), nullptr, left, 0);
    if (moved < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
      TROIKA_CHECK(copy_by_hand(source.get(), target.get(), from));
      return false;
    }
    if (moved < 0) return system_error("copy", from, errno);
    if (moved == 0) return Error{"copy", from, "it became shorter"};
    left -= static_cast<std::uint64_t>(moved);
  }
  return false;
}

}  // namespace

Result<CopyFacts> copy_directory(const std::string& from, const std::string& to) {
  TROIKA_CHECK(platform::make_directories(to));
  CopyFacts facts;
  std::error_code error;
  for (std::filesystem::directory_iterator it(from, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file()) continue;
    TROIKA_TRY(bytes, file_size(it->path().string()));
    TROIKA_TRY(shared,
               copy_file(it->path().string(), to + "/" + it->path().filename().string(), bytes.count));
    facts.files += 1;
    facts.reflinked += shared ? 1 : 0;
    facts.bytes += bytes;
  }
  if (error) return Error{"list", from, error.message()};
  return facts;
}

Status flip_byte(const std::string& path, std::uint64_t offset) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return system_error("open", path, errno);
  unsigned char byte = 0;
  const auto at = static_cast<off_t>(offset);
  if (::pread(fd.get(), &byte, 1, at) != 1)
    return Error{"read byte " + std::to_string(offset) + " of", path, "it is shorter"};
  byte = static_cast<unsigned char>(~byte);
  if (::pwrite(fd.get(), &byte, 1, at) != 1 || ::fsync(fd.get()) != 0)
    return system_error("write", path, errno);
  return Done{};
}

Result<Bytes> file_size(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return system_error("look at", path, errno);
  return Bytes{static_cast<std::uint64_t>(facts.st_size)};
}

}  // namespace troika::local
