#include "engine/safetensors/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace troika::safetensors {
namespace {

constexpr std::size_t kLongestIndex = 256U << 20U;  // the index of the largest known model is below 20 MB

class RegularFile {
 public:
  explicit RegularFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;
  ~RegularFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  Result<std::uint64_t> size() const {
    if (fd_ < 0) return system_error("open", path_, errno);
    struct stat facts {};
    if (::fstat(fd_, &facts) != 0) return system_error("read", path_, errno);
    if (!S_ISREG(facts.st_mode)) return Error{"read", path_, "not a regular file"};
    return static_cast<std::uint64_t>(facts.st_size);
  }

  Result<std::string> read(std::uint64_t offset, std::size_t bytes) const {
    std::string text(bytes, '\0');
    std::size_t filled = 0;
    while (filled < bytes) {
      const auto got =
          ::pread(fd_, text.data() + filled, bytes - filled, static_cast<off_t>(offset + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return system_error("read", path_, got < 0 ? errno : EIO);
      filled += static_cast<std::size_t>(got);
    }
    return text;
  }

 private:
  const std::string& path_;
  int fd_;
};

}  // namespace

Result<std::string> read_text(const std::string& path, std::size_t limit) {
  const RegularFile file(path);
  TROIKA_TRY(size, file.size());
  if (size > limit) return Error{"read", path, "over " + std::to_string(limit) + " bytes"};
  return file.read(0, static_cast<std::size_t>(size));
}

Result<Header> read_header(const std::string& path) {
  const auto wrong = [&](std::string reason) {
    return Error{"read the safetensors header of", path, std::move(reason)};
  };
  const RegularFile file(path);
  TROIKA_TRY(size, file.size());
  TROIKA_TRY(first, file.read(0, size < 8 ? static_cast<std::size_t>(size) : 8));
  const HeaderLength length = header_length(first, size);
  if (length.fault) return wrong(length.fault->text());
  TROIKA_TRY(json, file.read(8, static_cast<std::size_t>(length.bytes)));
  Header header = parse_header(json);
  if (header.fault) return wrong(header.fault->text());
  if (header.file_bytes != size)
    return wrong("its tensors end at " + std::to_string(header.file_bytes) + ", the file at " +
                 std::to_string(size) + " bytes");
  return header;
}

Result<Index> read_index(const std::string& directory) {
  const std::string path = directory + "/model.safetensors.index.json";
  if (::access(path.c_str(), F_OK) == 0) {
    TROIKA_TRY(text, read_text(path, kLongestIndex));
    return parse_index(text, path);
  }
  TROIKA_TRY(header, read_header(directory + "/model.safetensors"));
  Index index;
  const auto shard = index.shards.insert("model.safetensors").id;
  for (const Tensor& tensor : header.tensors) {
    index.tensors.insert(tensor.name);
    index.shard_of.push_back(shard);
  }
  index.total_bytes = header.file_bytes - header.data_begin;
  return index;
}

}  // namespace troika::safetensors
