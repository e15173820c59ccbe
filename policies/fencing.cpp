#include "policies/fencing.hpp"

#include <algorithm>

#include "policies/line.hpp"
#include "vocabulary/result.hpp"

namespace troika::policies {
namespace {

Epoch known(const std::map<std::string, Epoch>& epochs, const std::string& replica) {
  const auto found = epochs.find(replica);
  return found == epochs.end() ? Epoch{} : found->second;
}

FenceAnswer refuse(const FenceState& state, FenceVerdict verdict, std::string message) {
  return {verdict, false, state, std::move(message)};
}

FenceAnswer accept(const FenceState& state, FenceState next) {
  const bool differs = !(next == state);
  return {FenceVerdict::Accept, differs, std::move(next), {}};
}

}  // namespace

std::string_view name(FenceVerdict verdict) {
  switch (verdict) {
    case FenceVerdict::Accept:
      return "ACCEPT";
    case FenceVerdict::Repeat:
      return "REPEAT";
    case FenceVerdict::StaleTerm:
      return "STALE_TERM";
    case FenceVerdict::StaleEpoch:
      return "STALE_EPOCH";
    case FenceVerdict::Busy:
      return "BUSY";
  }
  broken_invariant("fence verdict", __FILE__, __LINE__);
}

FenceAnswer check_term(const FenceState& state, Term term) {
  if (term < state.highest_term)
    return refuse(state, FenceVerdict::StaleTerm,
                  line("term ", term, " is over: term ", state.highest_term, " was obeyed here"));
  FenceState next = state;
  next.highest_term = term;
  return accept(state, std::move(next));
}

FenceAnswer check_start(const FenceState& state, Term term, const StageId& stage, Epoch epoch,
                        const std::vector<HeldStage>& held) {
  FenceAnswer answer = check_term(state, term);
  if (!answer.obey()) return answer;
  const Epoch highest = known(state.highest_epochs, stage.replica);
  if (epoch < highest || epoch.count == 0)
    return refuse(
        state, FenceVerdict::StaleEpoch,
        line("epoch ", epoch, " of ", stage.replica, " is over: epoch ", highest, " was seen here"));
  for (const HeldStage& h : held) {
    if (h.stage.replica == stage.replica && h.epoch == epoch) {
      if (h.stage != stage) continue;
      answer.verdict = FenceVerdict::Repeat;
      return answer;
    }
    return refuse(state, FenceVerdict::Busy,
                  line(text(h.stage), " of epoch ", h.epoch, " is not released on this node"));
  }
  if (epoch <= known(state.ended_epochs, stage.replica))
    return refuse(state, FenceVerdict::StaleEpoch,
                  line("epoch ", epoch, " of ", stage.replica, " was told to stop here"));
  FenceState next = std::move(answer.next);
  next.highest_epochs[stage.replica] = epoch;
  return accept(state, std::move(next));
}

FenceAnswer check_stop(const FenceState& state, Term term, const StageId& stage, Epoch epoch) {
  FenceAnswer answer = check_term(state, term);
  if (!answer.obey()) return answer;
  FenceState next = std::move(answer.next);
  const auto raise = [&](std::map<std::string, Epoch>& epochs) {
    if (known(epochs, stage.replica) < epoch) epochs[stage.replica] = epoch;
  };
  raise(next.highest_epochs);
  raise(next.ended_epochs);
  return accept(state, std::move(next));
}

FenceAnswer check_verify(const FenceState& state, Term term) {
  return check_term(state, term);
}

FenceAnswer check_probe(const FenceState& state, Term term, const std::string& replica, Epoch epoch,
                        const std::vector<HeldStage>& held) {
  FenceAnswer answer = check_term(state, term);
  if (!answer.obey()) return answer;
  const bool here = std::any_of(held.begin(), held.end(), [&](const HeldStage& h) {
    return h.stage.replica == replica && h.epoch == epoch;
  });
  if (here) return answer;
  return refuse(state, FenceVerdict::StaleEpoch,
                line("epoch ", epoch, " of ", replica, " does not run here"));
}

FenceVerdict check_route(const RouteFence& in_force, const RouteFence& offered) {
  if (offered.term < in_force.term) return FenceVerdict::StaleTerm;
  if (offered.term > in_force.term || offered.generation > in_force.generation) return FenceVerdict::Accept;
  return offered.generation == in_force.generation ? FenceVerdict::Repeat : FenceVerdict::StaleTerm;
}

}  // namespace troika::policies
