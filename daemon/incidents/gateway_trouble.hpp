// A gateway that does not start: each of its ends before it was connected, until it is. It becomes one
// incident, which closes when the gateway is connected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/incidents/incidents.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon {

// How a gateway ended that the leader had started.
struct GatewayEnd {
  std::string how;         // "with status 2"
  std::string words;       // the last thing it said; empty: nothing
  bool bad_input = false;  // what it was given is wrong: another start ends the same way
  bool was_asked = false;  // to end: a SIGTERM that it obeyed
};

class GatewayTrouble {
 public:
  // Ends for another reason than bad input that are only logged: a port that is still taken for a moment.
  static constexpr std::uint32_t kBorne = 2;

  explicit GatewayTrouble(Incidents& incidents) : incidents_(incidents) {}

  // The gateway ended. One that was connected since it was started had started well: the next one tells.
  Status ended(const GatewayEnd& end, WallTime wall);
  // Each tick.
  Status tick(bool connected, WallTime wall);

 private:
  Incidents& incidents_;
  std::optional<bool> open_;  // as far as known; an earlier leader may have left one
  std::uint32_t ends_ = 0;    // since a gateway was connected
  bool connected_ = false;    // since the last end
  std::string told_;          // the last end that the incident tells of
};

}  // namespace troika::daemon
