// What the end of a stage means. Modes 50 and 66; case D10: an exit that nobody asked for is a failure
// whatever its code.
#pragma once

#include <string>
#include <vector>

#include "agent/stage/identity.hpp"
#include "protocol/messages.hpp"

namespace troika::agent {

// What the stage said last about why it ends.
struct LastWords {
  std::string reason;    // empty: it said nothing
  bool follows = false;  // a neighbour was lost: the cause is elsewhere
};

std::vector<Finding> exit_findings(const std::string& node, const StageKey& key,
                                   const protocol::ExitStatus& exit, const LastWords& said);

std::string exit_text(const protocol::ExitStatus& exit);  // "signal 9 (Killed)", "code 3"

}  // namespace troika::agent
