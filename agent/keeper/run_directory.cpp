#include "agent/keeper/run_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

namespace troika::keeper {
namespace {

constexpr const char* kReserve = "exit.reserve";
constexpr off_t kReservedBytes = 4096;  // a record has less than 200

}  // namespace

Result<RunDirectory> RunDirectory::open(const std::string& path) {
  platform::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!fd) return system_error("open the run directory", path, errno);
  return RunDirectory{path, std::move(fd)};
}

bool RunDirectory::vanished() const {
  struct stat facts {};
  return ::fstat(fd_.get(), &facts) != 0 || facts.st_nlink == 0;
}

Status RunDirectory::reserve_exit() {
  const std::string path = path_ + "/" + kReserve;
  reserve_.reset(::openat(fd_.get(), kReserve, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!reserve_) return system_error("create", path, errno);
  if (const int error = ::posix_fallocate(reserve_.get(), 0, kReservedBytes); error != 0)
    return system_error("reserve space for", path, error);
  if (::fsync(reserve_.get()) != 0) return system_error("write", path, errno);
  return Done{};
}

Status RunDirectory::write_exit(const Exit& exit) {
  const std::string text = write(exit);
  const std::string path = path_ + "/" + kExitFile;
  if (::pwrite(reserve_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return system_error("write", path, errno);
  if (::ftruncate(reserve_.get(), static_cast<off_t>(text.size())) != 0)
    return system_error("write", path, errno);
  if (::fsync(reserve_.get()) != 0) return system_error("write", path, errno);
  if (::renameat(fd_.get(), kReserve, fd_.get(), kExitFile) != 0) return system_error("write", path, errno);
  if (::fsync(fd_.get()) != 0) return system_error("write", path, errno);
  return Done{};
}

}  // namespace troika::keeper
