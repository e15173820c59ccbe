// The promises that every run is held to, at every step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/admission.hpp"
#include "vocabulary/names.hpp"
#include "vocabulary/units.hpp"

namespace troika::sim {

class Checks {
 public:
  explicit Checks(policies::AdmissionRule rule) : rule_(rule) {}

  // (a) no two epochs of a replica live at once. A process lives until its release, not only until its exit.
  void process_began(const StageId& stage, Epoch epoch, int node);
  void process_released(const StageId& stage, Epoch epoch, int node);
  // (b) no request reaches an epoch that has not been proven.
  void proven(const std::string& replica, Epoch epoch) { proven_.insert({replica, epoch}); }
  void request_routed(const std::string& replica, Epoch epoch);
  // (c) in any interval w, at most burst + rate * w requests are passed on.
  void passed(Instant at);
  // (e) every command finishes once.
  void command_given(std::uint64_t command, int leader) { open_commands_[command] = leader; }
  void command_finished(std::uint64_t command);
  void leader_died(int leader);
  std::vector<std::uint64_t> open_commands() const;
  // (f) no epoch and no term is used again.
  void start_sent(const StageId& stage, Epoch epoch, int leader, std::uint64_t store_generation);
  void term_announced(Term term, int leader, std::uint64_t store_generation);

  void fail(std::string what) {
    if (!failure_.has_value()) failure_ = std::move(what);
  }
  const std::optional<std::string>& failure() const { return failure_; }

 private:
  struct Live {
    StageId stage;
    Epoch epoch;
    int node;
  };
  policies::AdmissionRule rule_;
  std::vector<Live> live_;
  std::set<std::pair<std::string, Epoch>> proven_;
  std::vector<Instant> passes_;
  std::map<std::uint64_t, int> open_commands_;
  using Generation = std::uint64_t;  // of the store
  std::set<std::pair<StageId, Epoch>> began_;
  std::set<std::tuple<Generation, StageId, Epoch>> starts_;
  std::map<std::pair<Generation, std::string>, std::pair<Epoch, int>>
      newest_;  // epoch, and the leader that began it
  std::map<std::pair<Generation, Term>, int> terms_;
  std::optional<std::string> failure_;
};

}  // namespace troika::sim
