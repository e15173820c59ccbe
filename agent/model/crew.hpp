// Reads many files at once and takes their digests: a thread for each processor, each of which hashes two
// files interleaved (sha256/), while the disk reads ahead of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/model/file_check.hpp"
#include "agent/model/manifest.hpp"
#include "agent/model/witness.hpp"

namespace troika::model {

// Memory: 4 MiB for each thread, so 32 MiB.
inline constexpr unsigned kMostThreads = 8;

struct CrewOptions {
  unsigned threads = 0;      // 0: as many as processors, at most kMostThreads
  bool low_priority = true;  // for processor and disk: what serves on this machine goes first
  Memory memory{};           // where good digests go
  // With the bytes read so far, after each piece, by the thread that has it; tests change files and cancel
  // here.
  std::function<void(std::uint64_t)> after_piece{};
};

struct CrewTask {
  std::string name;
  std::string path;
  std::uint64_t bytes = 0;
  ManifestFile expected;          // without digests: nothing is compared
  std::uint64_t block_bytes = 0;  // the digest of each block of so many bytes is taken as well; 0: not
};

struct CrewProgress {
  std::uint64_t bytes = 0;  // read
  std::uint32_t files = 0;  // done
  std::string file;         // one of those being read
};

// In the order of the tasks; those that a cancellation left have neither digest nor finding. `progress` comes
// a few times a second, in the calling thread. `cancel` is looked at after every MiB of each file.
std::vector<Reading> read_files(const std::vector<CrewTask>& tasks, const CrewOptions& options,
                                const std::function<void(const CrewProgress&)>& progress,
                                const std::atomic<bool>& cancel);

}  // namespace troika::model
