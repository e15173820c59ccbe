// One file of the manifest: first what can be told without reading it all, then its bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/model/file_reader.hpp"
#include "agent/model/manifest.hpp"
#include "agent/model/place.hpp"
#include "engine/safetensors/header.hpp"
#include "vocabulary/finding.hpp"

namespace troika::model {

struct FileFacts {
  std::string name;
  std::string path;  // real; empty: not there
  std::uint64_t bytes = 0;
  FileStamp stamp;                            // before anything was read of it
  std::optional<Finding> finding;             // the most specific cause
  std::optional<safetensors::Header> header;  // of a shard, where it is good
  bool whole = false;  // a shard whose header and size agree with each other, whatever the manifest says
};

// Order of causes: what the bytes are, then the header, then the size (codes of docs).
FileFacts look_at_file(const ModelRoot& root, const std::string& name, const ManifestFile& expected);

// Of a file that is to be pinned as it is: a body that is surely not what its name says. Shards have their
// proof.
std::optional<Finding> foreign_body(const FileFacts& file);

// What reading every byte told.
struct Reading {
  std::vector<std::string> blocks{};             // their digests, where they were asked for
  std::string sha256;                            // empty: not read to the end
  FileStamp stamp{};                             // before its first byte was read
  std::optional<Finding> finding;                // HASH_MISMATCH, ZERO_FILLED, CHANGED_WHILE_READ, UNREADABLE
  std::optional<policies::Remember> remembered;  // nothing: no record is kept, or the bytes are not good
};

Finding changed_while_read(const std::string& name);
Finding unreadable(const std::string& name, const Error& error);
// The digests are those of `bytes_read` bytes; without expected ones only whether the file stayed the same is
// judged. Where they are not the expected ones the file is read once more, to say where: zeros at its end, or
// the first block that differs.
Reading judge_bytes(FileReader& file, const std::string& name, const ManifestFile& expected,
                    std::uint64_t bytes_read, const std::string& sha256, const std::string& git_sha1,
                    const std::atomic<bool>& cancel);

}  // namespace troika::model
