// The run directory as the keeper holds it: by descriptor, so that it goes on when the path is gone.
#pragma once

#include <string>

#include "agent/keeper/record.hpp"
#include "platform/unique_fd.hpp"
#include "vocabulary/result.hpp"

namespace troika::keeper {

class RunDirectory {
 public:
  static Result<RunDirectory> open(const std::string& path);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  bool vanished() const;

  // Sets the blocks of the exit record aside, so that a disk that fills up later does not lose it.
  Status reserve_exit();
  // Durable when it returns good; may be tried again.
  Status write_exit(const Exit& exit);

 private:
  RunDirectory(std::string path, platform::UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  platform::UniqueFd fd_;
  platform::UniqueFd reserve_;
};

}  // namespace troika::keeper
