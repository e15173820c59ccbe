#include "checks.hpp"

#include <algorithm>

#include "policies/line.hpp"

namespace troika::sim {

using policies::line;

void Checks::process_began(const StageId& stage, Epoch epoch, int node) {
  for (const Live& live : live_) {
    if (live.stage.replica != stage.replica) continue;
    if (live.epoch == epoch && live.stage != stage) continue;
    fail(line("two epochs at once: ", text(stage), " of epoch ", epoch, " began on node ", node, " while ",
              text(live.stage), " of epoch ", live.epoch, " is not released on node ", live.node));
  }
  if (!began_.insert({stage, epoch}).second)
    fail(line(text(stage), " of epoch ", epoch, " began a second time"));
  live_.push_back({stage, epoch, node});
}

void Checks::process_released(const StageId& stage, Epoch epoch, int node) {
  std::erase_if(live_, [&](const Live& l) { return l.stage == stage && l.epoch == epoch && l.node == node; });
}

void Checks::request_routed(const std::string& replica, Epoch epoch) {
  if (!proven_.contains({replica, epoch}))
    fail(line("a request was routed to epoch ", epoch, " of ", replica, ", which was not proven"));
}

void Checks::passed(Instant at) {
  passes_.push_back(at);
  for (std::size_t i = passes_.size(); i-- > 0;) {
    const double w = static_cast<double>((at - passes_[i]).count()) * 1e-9;
    const auto n = static_cast<double>(passes_.size() - i);
    if (n <= rule_.burst + rule_.rate * w + 1e-9) continue;
    fail(line(passes_.size() - i, " requests were passed on within ", (at - passes_[i]).count(), " ns"));
  }
}

void Checks::command_finished(std::uint64_t command) {
  if (open_commands_.erase(command) == 0)
    fail(line("command ", command, " finished twice, or was never given"));
}

void Checks::leader_died(int leader) {
  std::erase_if(open_commands_, [&](const auto& entry) { return entry.second == leader; });
}

std::vector<std::uint64_t> Checks::open_commands() const {
  std::vector<std::uint64_t> open;
  for (const auto& [command, leader] : open_commands_)
    open.push_back(command);
  return open;
}

// A number that was written to a store which is lost, and that no agent ever got, is not used in any sense
// that could matter; what an agent got is never used again, lost store or not (process_began).
void Checks::start_sent(const StageId& stage, Epoch epoch, int leader, std::uint64_t store_generation) {
  if (!starts_.insert({store_generation, stage, epoch}).second)
    fail(line("epoch ", epoch, " of ", text(stage), " was started a second time"));
  auto& [newest, by] = newest_[{store_generation, stage.replica}];
  if (epoch < newest || (epoch == newest && by != leader))
    fail(line("epoch ", epoch, " of ", stage.replica, " was used again: ", newest, " was the newest"));
  newest = epoch;
  by = leader;
}

// A lost store cannot know the terms before it until an agent tells them; it is raised above them then.
void Checks::term_announced(Term term, int leader, std::uint64_t store_generation) {
  const auto [entry, fresh] = terms_.try_emplace({store_generation, term}, leader);
  if (!fresh && entry->second != leader) fail(line("term ", term, " was used by two leaders"));
}

}  // namespace troika::sim
