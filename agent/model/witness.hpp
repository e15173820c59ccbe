// Sees to it that a file's digest is remembered only where policies/remembered allows it.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "agent/model/file_reader.hpp"
#include "agent/model/record.hpp"
#include "policies/remembered.hpp"

namespace troika::model {

policies::ClockReading read_clocks();  // of this machine

// A record of earlier proofs and how it is to be used.
struct Memory {
  ProofRecord* record = nullptr;  // none: nothing is remembered
  bool deep = false;              // every byte is read all the same
  Duration most_age{};            // of a proof that counts; 0: any
  std::function<policies::ClockReading()> clock = read_clocks;
};

// Of one file from before its first byte is read to after its last.
class Witness {
 public:
  Witness(const FileReader& file, const Memory& memory);
  // After the last byte, of a file that did not change. Waits until it is on the disk, or for `cancel`.
  policies::Remember testify(const FileReader& file, const std::string& sha256, const std::string& git_sha1,
                             const std::atomic<bool>& cancel);

 private:
  const Memory* memory_;
  policies::WholeRead read_;
};

// The digests that stand for the file with this path, without reading it.
std::optional<policies::Remembered> recall(const Memory& memory, const std::string& path);

}  // namespace troika::model
