// Judging what the leader says, and the JSON form of a report. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "protocol/messages.hpp"
#include "vocabulary/finding.hpp"

namespace troika::cli {

// What is wrong, doubtful or under way by this status, without repeats: a replica that shall run and does not
// serve, nodes and a gateway that are not heard, what was found on nodes, open incidents.
std::vector<Finding> findings_of(const protocol::StatusReply& status);
// Of the incidents that are still open: closed ones are history, not a state.
std::vector<Finding> findings_of(const std::vector<protocol::Incident>& incidents);

// What kept a command from its work, as a finding that agrees with the exit status: CANNOT_TELL where the
// leader could not be asked or did not answer, REFUSED where it said no, CONFIG_INVALID where our own files
// or addresses are wrong.
Finding trouble(const Error& error, Exit status, std::string remedy = {});

// {"format":1,"verdict":...,"findings":[...]} and the members of `own`.
nlohmann::json report(const std::vector<Finding>& findings, const nlohmann::json& own);
// One document and a line feed; text that is not UTF-8 is replaced, never thrown over.
std::string document(const nlohmann::json& report);

}  // namespace troika::cli
