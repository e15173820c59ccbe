// What `troika verify` of all nodes shows.
#include <fmt/format.h>

#include <algorithm>

#include "cli/render.hpp"
#include "cli/table.hpp"

namespace troika::cli {
namespace {

Tone tone_of_proof(Verdict verdict) {
  return verdict == Verdict::Ok ? Tone::Good : verdict == Verdict::Error ? Tone::Bad : Tone::Doubtful;
}

}  // namespace

std::string each_node(const protocol::AuditStatus& status) {
  std::string text;
  for (const protocol::AuditedNode& one : status.nodes) {
    text += text.empty() ? "; " : ", ";
    text += shown(one.node);
    if (one.answered)
      text += " done";
    else if (one.total.count > 0)
      text += fmt::format(" {}%", std::min<std::uint64_t>(one.done.count / (one.total.count / 100 + 1), 100));
    else
      text += " begins";
  }
  return text;
}

std::string render_audit(const protocol::AuditReply& reply, const Style& style) {
  std::string text;
  for (const Finding& one : reply.findings)
    text += render_finding(one, style);
  Table table({"NODE", "VERDICT", "FILES", "SHARDS", "TENSORS", "READ", "UNCHANGED", "TOOK"});
  for (const protocol::AuditedNode& one : reply.nodes)
    table.row({{shown(one.node)},
               {std::string(name(one.verdict)), tone_of_proof(one.verdict)},
               {std::to_string(one.files)},
               {std::to_string(one.shards)},
               {std::to_string(one.tensors)},
               {bytes_text(one.bytes)},
               {std::to_string(one.cached)},
               {seconds_text(one.seconds)}});
  if (!table.empty()) text += table.text(style);
  const Verdict verdict = verdict_of(reply.findings);
  const auto good =
      std::count_if(reply.nodes.begin(), reply.nodes.end(), [](const protocol::AuditedNode& one) {
        return one.verdict == Verdict::Ok || one.verdict == Verdict::Warning;
      });
  return text + fmt::format("{}: {} of {} nodes have proven the model\n",
                            toned(name(verdict), tone_of_proof(verdict), style), good, reply.nodes.size());
}

}  // namespace troika::cli
