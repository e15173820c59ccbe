// The manifest as agents get it.
#pragma once

#include <string>
#include <variant>

#include "protocol/messages.hpp"
#include "vocabulary/finding.hpp"

namespace troika::daemon {

// From the leader's file, read each time: whoever corrects it need not restart the leader. Without digests of
// blocks where it would be larger than a message may be. Else MANIFEST_INVALID.
std::variant<protocol::Manifest, Finding> manifest_for_agents(const std::string& path);

}  // namespace troika::daemon
