// What an agent obeys: the fence against leaders and epochs that are no longer in force. Pure; the agent
// calls it for every message of a leader, on its one thread, before it does anything about it. Mode 86.
//
// How it is used: answer = check_...(state, ...); if accepted and write_first, write answer.next down
// durably, then state = answer.next, then obey. If writing fails, do not obey (answer the message with a
// Refusal).
//
// Beside the fence, an agent must keep one rule that no number can replace: once it has sent a Hello on a new
// connection to a leader, it obeys nothing that still arrives over an earlier one to the same leader. Where
// it is connected to several leaders at once, what it obeys from one it reports to all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vocabulary/names.hpp"
#include "vocabulary/units.hpp"

namespace troika::policies {

// Written down by the agent; the first two are what Hello reports. A lost or unreadable record must be
// treated as a broken node (CANNOT_TELL), not as an empty one, unless nothing of ours runs there.
struct FenceState {
  Term highest_term;                            // obeyed so far
  std::map<std::string, Epoch> highest_epochs;  // by replica: started or stopped so far
  std::map<std::string, Epoch> ended_epochs;  // by replica: told to stop; nothing up to it may start any more

  bool operator==(const FenceState&) const = default;
};

// Something of ours on this node: a stage of any epoch whose release is not proven.
struct HeldStage {
  StageId stage;
  Epoch epoch;
};

enum class FenceVerdict { Accept, Repeat, StaleTerm, StaleEpoch, Busy };
std::string_view name(FenceVerdict verdict);  // "ACCEPT", "REPEAT", "STALE_TERM", "STALE_EPOCH", "BUSY"

struct FenceAnswer {
  FenceVerdict verdict{};    // Repeat: it runs already; report its state again, start nothing
  bool write_first = false;  // next differs from the state and must be durable before obeying
  FenceState next;           // equals the state where the message is refused
  std::string message;       // of a refusal, with the figures

  bool obey() const { return verdict == FenceVerdict::Accept || verdict == FenceVerdict::Repeat; }
};

// Welcome, Verify and Probe's first check: a lower term than the highest obeyed is refused, a higher one is
// taken over.
FenceAnswer check_term(const FenceState& state, Term term);

// StartStage. `held`: everything on the node whose release is not proven, of any replica (also NotReleased
// and CannotTell ones). Accepts only an epoch above every one of that replica seen here, or the same epoch
// for another rank of it; the same stage again while it is held is a Repeat.
FenceAnswer check_start(const FenceState& state, Term term, const StageId& stage, Epoch epoch,
                        const std::vector<HeldStage>& held);

// StopStage: obeyed for any epoch (it ends this one and lower ones) of a leader whose term is not stale.
// After it no start of that epoch is accepted any more.
FenceAnswer check_stop(const FenceState& state, Term term, const StageId& stage, Epoch epoch);

// Verify: term only; a probe must also name exactly the epoch that is held here.
FenceAnswer check_verify(const FenceState& state, Term term);
FenceAnswer check_probe(const FenceState& state, Term term, const std::string& replica, Epoch epoch,
                        const std::vector<HeldStage>& held);

// The gateway's side: a Route is obeyed if it is newer than the one in force (by term, then generation); an
// equal one is a Repeat. StaleTerm also stands for an older generation of the same term.
struct RouteFence {
  Term term;
  std::uint64_t generation = 0;
};
FenceVerdict check_route(const RouteFence& in_force, const RouteFence& offered);

}  // namespace troika::policies
