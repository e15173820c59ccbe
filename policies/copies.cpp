#include "policies/copies.hpp"

#include <algorithm>

#include "policies/line.hpp"

namespace troika::policies {
namespace {

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_good_copy(const NodeCopies& one, const std::string& digest, const std::string& file) {
  return one.others_proven && one.manifest_digest == digest && !among(one.unproven, file);
}

}  // namespace

void tell_good_copies(std::vector<Finding>& findings, const std::vector<NodeCopies>& nodes) {
  for (Finding& bad : findings) {
    const auto there =
        std::find_if(nodes.begin(), nodes.end(), [&](const NodeCopies& n) { return n.node == bad.node; });
    if (there == nodes.end() || bad.severity != Severity::Error || !among(there->unproven, bad.subject))
      continue;
    std::string good;
    for (const NodeCopies& other : nodes) {
      if (other.node == bad.node || !has_good_copy(other, there->manifest_digest, bad.subject)) continue;
      good += (good.empty() ? "" : ", ") + other.node;
    }
    if (good.empty()) {
      const bool nowhere =
          nodes.size() > 1 && std::all_of(nodes.begin(), nodes.end(), [&](const NodeCopies& n) {
            return n.others_proven && n.manifest_digest == there->manifest_digest &&
                   among(n.unproven, bad.subject);
          });
      if (nowhere) bad.remedy += line(bad.remedy.empty() ? "" : "; ", "no node has a good copy");
      continue;
    }
    bad.remedy += line(bad.remedy.empty() ? "" : "; ", "proven good copies: ", good);
    bad.evidence.emplace_back("good_copies", std::move(good));
  }
}

}  // namespace troika::policies
