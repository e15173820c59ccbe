// The record of earlier proofs: which digest a file had when, and of which manifests index and headers agree.
// A cache in SQLite: each row is written after its file was read, and losing any costs reading the file
// again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/sqlite.hpp"
#include "policies/remembered.hpp"
#include "protocol/message.hpp"
#include "vocabulary/finding.hpp"
#include "vocabulary/result.hpp"

namespace troika::model {

// What only the contents of a manifest's files decide. Proven bytes make it true again.
struct Contents {
  std::uint64_t tensors = 0;
  std::vector<Finding> findings;  // of Severity::Info
  TROIKA_FIELDS(Contents, "contents") {
    v.required("tensors", m.tensors);
    v.required("findings", m.findings);
  }
};

// For several threads at once.
class ProofRecord {
 public:
  // Rows kept; the oldest beyond go. Some 40 models.
  static constexpr std::int64_t kKeptFiles = 10000;
  static constexpr std::int64_t kKeptManifests = 256;

  // Makes the file and its folder where they are missing. Error: not a sound database, of a newer version, or
  // somebody else's (its rows would be believed); it is left as it is.
  static Result<std::unique_ptr<ProofRecord>> open(const std::string& path);

  std::optional<policies::Remembered> find(const policies::FileStamp& stamp);
  void put(const policies::Remembered& one);
  std::optional<Contents> contents_of(const std::string& manifest_digest);
  void put_contents(const std::string& manifest_digest, const Contents& contents);

  // The first error of a read or write; after one nothing is read or written any more.
  Status health();

 private:
  explicit ProofRecord(platform::Database database) : database_(std::move(database)) {}
  Result<std::optional<policies::Remembered>> read(const policies::FileStamp& stamp);
  Result<std::optional<Contents>> read_contents(const std::string& manifest_digest);
  Status write(const policies::Remembered& one);
  Status write_contents(const std::string& manifest_digest, const Contents& contents);

  std::mutex mutex_;
  platform::Database database_;
  Status health_ = Done{};
};

}  // namespace troika::model
