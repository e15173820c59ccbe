// Events that the leader has not acknowledged yet, on disk: what happened while nobody listened is handed
// over later, in order. Repeats are harmless, losses are not.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "protocol/messages.hpp"
#include "vocabulary/result.hpp"

namespace troika::agent {

class Spool {
 public:
  static constexpr std::size_t kMost = 4096;  // beyond it the oldest are given up

  // `directory` is made. Files that cannot be understood are put aside by name and said.
  static Result<Spool> open(const std::string& directory, const std::string& node,
                            const std::string& boot_id);

  // Durable when it returns; on a full disk it is kept in memory only, and said.
  const protocol::StageEvent& add(const protocol::StageReport& report);
  // The event's report, if it was waiting.
  std::vector<protocol::StageReport> acknowledge(const std::string& event);

  std::vector<protocol::StageEvent> waiting() const;
  // Is there an event of this stage waiting that says that nothing is left?
  bool holds_release(const StageId& stage, Epoch epoch) const;

 private:
  struct Entry {
    std::uint64_t number = 0;
    protocol::StageEvent event;
  };
  Spool(std::string directory, std::string id_prefix)
      : directory_(std::move(directory)), id_prefix_(std::move(id_prefix)) {}
  std::string path_of(std::uint64_t number) const;
  void load_one(const std::string& name);

  std::string directory_;
  std::string id_prefix_;
  std::deque<Entry> entries_;
  std::uint64_t next_number_ = 1;
  std::uint64_t last_counter_ = 0;
};

}  // namespace troika::agent
