// The operator's own record of proofs: $TROIKA_STATE_DIR/proofs.sqlite; without that variable below
// /var/lib/troika, else, where that may not be written, below $XDG_STATE_HOME (~/.local/state).
#pragma once

#include <memory>
#include <string>

#include "agent/model/record.hpp"

namespace troika::cli {

// None where it cannot be used, which is told on stderr: everything is read then.
std::unique_ptr<model::ProofRecord> open_record();
// Tells on stderr what went wrong with it while it was used.
void tell_health(model::ProofRecord* record);

}  // namespace troika::cli
