#include "cli/audit_command.hpp"

#include <unistd.h>

#include "cli/client.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/render.hpp"
#include "cli/report.hpp"

namespace troika::cli {
namespace {

// The leader tells twice a second how it goes, and gives up itself on a node without progress.
constexpr Duration kSilence = std::chrono::minutes{1};

Done in_sum(const protocol::AuditStatus& status) {
  Done sum;
  for (const protocol::AuditedNode& one : status.nodes) {
    sum.bytes.count += one.done.count;
    sum.total.count += one.total.count;
    sum.files += one.files_done;
    sum.files_total += one.files_total;
  }
  return sum;
}

nlohmann::json for_programs(const protocol::AuditReply& reply) {
  auto nodes = nlohmann::json::array();
  for (const protocol::AuditedNode& one : reply.nodes)
    nodes.push_back({{"node", one.node},
                     {"verdict", name(one.verdict)},
                     {"files", one.files},
                     {"shards", one.shards},
                     {"tensors", one.tensors},
                     {"bytes", one.bytes.count},
                     {"cached", one.cached},
                     {"seconds", one.seconds}});
  return report(reply.findings, {{"manifest_digest", reply.manifest_digest}, {"nodes", std::move(nodes)}});
}

}  // namespace

int audit(const Global& global, bool deep, bool json) {
  note_interrupts();
  auto answer = [&] {
    Progress progress("verify");
    return ask_audit(
        global, {deep},
        [&](const protocol::AuditStatus& status) { progress.tell(in_sum(status), each_node(status)); },
        kSilence, [] { return interrupted_by() != 0; });
  }();
  if (const int signal = interrupted_by(); signal != 0) {
    complain(
        finding(Code::CANNOT_TELL, "", "model", "interrupted before every node had answered; the nodes stop"),
        kCannotTell, json);
    return exit_status_of(signal);
  }
  if (!answer.ok()) return complain(answer.error, answer.failure, json, answer.remedy);
  print(json ? document(for_programs(*answer.reply)) : render_audit(*answer.reply, style_of(STDOUT_FILENO)));
  return troika::exit_status(verdict_of(answer.reply->findings));
}

}  // namespace troika::cli
