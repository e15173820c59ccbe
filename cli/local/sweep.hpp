// Clusters that nobody owns any more: what a demo or a test leaves when it is itself killed.
#pragma once

#include <string>
#include <vector>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::local {

// What a cluster's directory says of it (demo.json).
struct ClusterRecord {
  std::string cluster;
  int pid = 0;          // of the owner
  bool kept = false;    // left running on purpose: nobody's leftover
  std::string gateway;  // "http://127.0.0.1:20001"
  std::string socket;
};
Status write_record(const std::string& root, const ClusterRecord& record);
Result<ClusterRecord> read_record(const std::string& root);

struct Swept {
  std::string root;
  std::size_t processes = 0;
};

// Ends every process of the cluster in `root` and removes the directory. The error names what would not go.
Result<Swept> sweep(const std::string& root);
// Sweeps each directory `parent`/`prefix`.* of this user that has a record, is not kept, and whose owner is
// gone.
Result<std::vector<Swept>> sweep_stale(const std::string& parent, const std::string& prefix);
// Those that were left running on purpose.
std::vector<std::string> kept_clusters(const std::string& parent, const std::string& prefix);

// Without links and dots: a cluster's processes carry its folder's path, and are known by it. As it is where
// it does not exist.
std::string real_folder(const std::string& path);
std::string temp_folder();  // TMPDIR, else /tmp

}  // namespace troika::local
