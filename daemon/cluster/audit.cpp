#include "daemon/cluster/audit.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/cluster/mapping.hpp"
#include "vocabulary/time.hpp"

namespace troika::daemon {
void Audit::asked(const std::string& node, Instant now) {
  Seen& seen = nodes_[node];
  seen.line.node = node;
  seen.heard = now;
}

Audit::Seen* Audit::waited_for(const std::string& node) {
  const auto found = nodes_.find(node);
  return found == nodes_.end() || found->second.line.answered ? nullptr : &found->second;
}

void Audit::cannot_tell(const std::string& node, const std::string& why) {
  Seen& seen = nodes_[node];
  if (seen.line.answered) return;
  seen.line.node = node;
  seen.line.answered = true;
  seen.line.verdict = Verdict::CannotTell;
  seen.findings = {finding(Code::CANNOT_TELL, node, "model", node + " did not prove its model: " + why,
                           "look at its troika-agent, then troika verify again")};
}

void Audit::lost(const std::string& node) {
  if (waited_for(node) != nullptr) cannot_tell(node, "its connection ended");
}

void Audit::progressed(const std::string& node, const protocol::VerifyProgress& at, Instant now) {
  Seen* const seen = waited_for(node);
  if (seen == nullptr || at.request != request_) return;
  if (at.done > seen->line.done) seen->heard = now;
  seen->line.done = at.done;
  seen->line.total = at.total;
  seen->line.files_done = at.files_done;
  seen->line.files_total = at.files_total;
}

void Audit::answered(const std::string& node, protocol::VerifyDone proof) {
  Seen* const seen = waited_for(node);
  if (seen == nullptr || proof.request != request_) return;
  seen->copies = copies_of(node, proof);
  protocol::AuditedNode& line = seen->line;
  line.answered = true;
  line.verdict = verdict_of(proof.findings);
  line.files = proof.files;
  line.shards = proof.shards;
  line.cached = proof.cached;
  line.tensors = proof.tensors;
  line.bytes = proof.bytes;
  line.seconds = proof.seconds;
  line.done = line.total;
  line.files_done = line.files_total;
  for (Finding& one : proof.findings)
    seen->findings.push_back(clipped(std::move(one)));
}

void Audit::tick(Instant now) {
  for (auto& [name, seen] : nodes_)
    if (!seen.line.answered && now - seen.heard >= kPatience)
      cannot_tell(name, "no progress for " + duration_text(kPatience));
}

bool Audit::finished() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return n.second.line.answered; });
}

std::vector<protocol::AuditedNode> Audit::nodes() const {
  std::vector<protocol::AuditedNode> out;
  for (const auto& [name, seen] : nodes_)
    out.push_back(seen.line);
  return out;
}

protocol::AuditReply Audit::reply() const {
  protocol::AuditReply reply;
  reply.manifest_digest = manifest_digest_;
  reply.nodes = nodes();
  reply.findings = findings_;
  std::vector<policies::NodeCopies> copies;
  for (const auto& [name, seen] : nodes_) {
    std::copy(seen.findings.begin(), seen.findings.end(), std::back_inserter(reply.findings));
    copies.push_back(seen.copies);
  }
  worst_first(reply.findings);
  if (reply.findings.size() > kMostFindings) reply.findings.resize(kMostFindings);
  policies::tell_good_copies(reply.findings, copies);
  keep_worst(reply.findings, kMostFindings, protocol::kMostFindingsBytes);
  return reply;
}

}  // namespace troika::daemon
