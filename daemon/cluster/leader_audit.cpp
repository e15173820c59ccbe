// Proofs of the model that no start asked for.
#include "agent/model/manifest.hpp"
#include "daemon/cluster/leader.hpp"
#include "daemon/cluster/manifest_message.hpp"
#include "platform/log.hpp"

namespace troika::daemon {

Status Leader::begin_audit(bool deep) {
  if (audit_ && (audit_->deep() || !deep)) return Done{};
  if (audit_)
    return Error{"prove every byte on", "every node",
                 "a proof that is not so deep runs; ask again when it is done"};
  platform::log(std::string("an operator has every node prove its model") + (deep ? ", every byte" : ""));
  const std::uint64_t request = next_audit_++;
  auto read = manifest_for_agents(config_.model.manifest);
  if (const auto* why = std::get_if<Finding>(&read)) {
    audit_.emplace(request, deep, "").add(*why);
    return Done{};
  }
  protocol::Audit audit;
  audit.request = request;
  audit.term = cluster_.term();
  audit.deep = deep;
  audit.manifest = std::get<protocol::Manifest>(std::move(read));
  audit.manifest_digest = model::manifest_digest(audit.manifest);
  audit_.emplace(request, deep, audit.manifest_digest);
  for (const auto& [name, known] : nodes_.all()) {
    if (known.line) {
      audit_->asked(name, clock_.now());
      send(*nodes_.find(name), audit, {Sent::About::Audit, {}, {}, request});
    } else {
      audit_->cannot_tell(name, "it is not connected");
    }
  }
  return Done{};
}

void Leader::end_audit() {
  if (!audit_) return;
  platform::log("nobody waits for the proof of every node any more; it ends");
  const protocol::EndAudit end{audit_->request()};
  audit_.reset();
  for (const auto& [name, known] : nodes_.all())
    if (known.line) send(*nodes_.find(name), end);
}

void Leader::audit_lost(const std::string& node) {
  if (!audit_) return;
  audit_->lost(node);
  finish_audit();
}

void Leader::finish_audit() {
  if (!audit_ || !audit_->finished()) return;
  const auto reply = audit_->reply();
  audit_.reset();
  platform::log("every node has answered about its model: " +
                std::string(troika::name(verdict_of(reply.findings))));
  if (hooks_.audited) hooks_.audited(reply);
}

Status Leader::take(const std::string& name, Node&, const protocol::AuditProgress& progress) {
  if (audit_) audit_->progressed(name, progress.at, clock_.now());
  return Done{};
}

Status Leader::take(const std::string& name, Node&, const protocol::AuditDone& done) {
  if (!audit_) return Done{};
  audit_->answered(name, done.proof);
  finish_audit();
  return Done{};
}

}  // namespace troika::daemon
