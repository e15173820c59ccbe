// The proof that a directory holds exactly the model of a manifest: every byte by its digest, every header by
// the format's rules, index and headers by each other. With a record of earlier proofs (crew.memory) a file
// that has not changed since is not read again. Blocks for as long as it reads; to be run in a thread
// of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/model/crew.hpp"
#include "agent/model/manifest.hpp"
#include "platform/files.hpp"
#include "vocabulary/finding.hpp"
#include "vocabulary/units.hpp"

namespace troika::model {

struct ProofPlan {
  std::string directory;
  Manifest manifest;
  std::string node;        // put into the findings
  CrewOptions crew{};      // its memory: which earlier proofs count
  bool read_bytes = true;  // false: names, sizes, headers and index alone
  std::function<Result<Bytes>(const std::string&)> free_space = platform::free_space;  // of a directory
};

struct ProofProgress {
  Bytes done;
  Bytes total;
  std::uint32_t files_done = 0;
  std::uint32_t files_total = 0;
  std::string file;  // being read
};

struct FileProof {
  std::string name;
  Bytes bytes;
  std::string sha256;   // as read or remembered; empty: not read to the end
  std::string status;   // "ok", a finding's code, or "not_read"
  bool cached = false;  // by the record of an earlier proof
  std::optional<policies::Remember>
      remembered{};  // for the next one; nothing: no record, not good, or cached
};

struct ModelProof {
  std::string manifest_digest;
  std::uint32_t files = 0;   // whose bytes are proven
  std::uint32_t shards = 0;  // of these
  std::uint32_t cached = 0;  // of the files: not read, as the record of an earlier proof counts
  std::uint64_t tensors = 0;
  Bytes bytes;    // read
  Bytes missing;  // of the files that must be fetched, whole
  double seconds = 0;
  bool cancelled = false;
  std::vector<FileProof> list;
  std::vector<Finding> findings;  // verdict_of: the verdict
};

// `progress` comes a few times a second, in the calling thread. `cancel` is looked at after every MiB; a
// cancelled proof has no verdict.
ModelProof prove_model(const ProofPlan& plan, const std::function<void(const ProofProgress&)>& progress,
                       const std::atomic<bool>& cancel);

}  // namespace troika::model
