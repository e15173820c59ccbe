// What the end of a stage means. Modes 50 and 66; case D10: an exit that nobody asked for is a failure
// whatever its code.
#pragma once

#include <string>
#include <vector>

#include "agent/stage/identity.hpp"
#include "protocol/messages.hpp"

namespace troika::agent {

// `reason`: what the stage said last about why, may be empty.
std::vector<Finding> exit_findings(const std::string& node, const StageKey& key,
                                   const protocol::ExitStatus& exit, const std::string& reason);

std::string exit_text(const protocol::ExitStatus& exit);  // "signal 9 (Killed)", "code 3"

}  // namespace troika::agent
