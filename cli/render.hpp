// What people read: pure functions from what the leader says to text, with a line feed at the end of each
// line.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "protocol/messages.hpp"
#include "vocabulary/units.hpp"

namespace troika::cli {

std::string render_status(const protocol::StatusReply& status, const Style& style);
// One line an incident, oldest first.
std::string render_incidents(const std::vector<protocol::Incident>& incidents, const Style& style);
// One incident in full: findings with evidence and remedy, actions in order.
std::string render_incident(const protocol::Incident& incident, const Style& style);
// "error HASH_MISMATCH n2 model-00007-of-00046.safetensors: ..." and its remedy.
std::string render_finding(const Finding& finding, const Style& style);

// Findings, a line a node, and the verdict.
std::string render_audit(const protocol::AuditReply& reply, const Style& style);
// How far each node is, as the rest of a line: "; spark-1 12%, spark-2 done".
std::string each_node(const protocol::AuditStatus& status);

std::string seconds_text(double seconds);         // "0.4s", "12s", "3m10s", "5h02m", "2d03h"
std::string bytes_text(Bytes bytes);              // "512 B", "3.4 MiB", "121.7 GiB"
std::string share_text(Bytes part, Bytes whole);  // "12.1 of 24.0 GiB"

}  // namespace troika::cli
