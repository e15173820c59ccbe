// The stage's output on disk: log and, before it, log.1, together never over the limit, without a gap where
// one ends and the other begins. A full disk costs output, never the stage.
#pragma once

#include <cstdint>
#include <string_view>

#include "agent/keeper/run_directory.hpp"
#include "platform/unique_fd.hpp"
#include "vocabulary/units.hpp"

namespace troika::keeper {

class BoundedLog {
 public:
  // `directory` outlives this. Half of `limit` is one file's share, at least 4 KiB.
  BoundedLog(const RunDirectory& directory, Bytes limit);

  void append(std::string_view output);

  std::uint64_t written() const { return written_; }  // bytes since the start
  std::uint64_t lost() const { return lost_; }        // bytes that could not be written

 private:
  void open();
  void rotate();

  const RunDirectory& directory_;
  std::uint64_t share_;
  std::uint64_t size_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t lost_ = 0;
  platform::UniqueFd fd_;
};

}  // namespace troika::keeper
