#include "daemon/incidents/gateway_trouble.hpp"

#include <utility>
#include <vector>

namespace troika::daemon {
namespace {

const std::string kSubject = "gateway";

Finding finding_of(const std::string& told) {
  return finding(
      Code::START_FAILED, "", kSubject, told,
      "put right what it names; a damaged gateway.sqlite is moved away. The leader goes on starting it "
      "(docs/runbook.md, The gateway)");
}

}  // namespace

Status GatewayTrouble::ended(const GatewayEnd& end, WallTime wall) {
  if (std::exchange(connected_, false) || end.was_asked) return Done{};
  ++ends_;
  if (!end.bad_input && ends_ <= kBorne) return Done{};
  const std::string told = "the gateway does not start, it ended " + end.how +
                           (end.words.empty() ? "; its log tells more" : ": " + end.words);
  // Over and over the same: said once.
  if (open_ == true && told == told_) return Done{};
  TROIKA_TRY(noted, incidents_.note(kSubject, told, {finding_of(told)}, wall));
  if (!noted) TROIKA_CHECK(incidents_.open(kSubject, told, {finding_of(told)}, wall));
  open_ = true;
  told_ = told;
  return Done{};
}

Status GatewayTrouble::tick(bool connected, WallTime wall) {
  if (!connected) return Done{};
  connected_ = true;
  ends_ = 0;
  if (open_ == false) return Done{};
  TROIKA_TRY(open, incidents_.is_open(kSubject));
  if (open) TROIKA_CHECK(incidents_.close(kSubject, "the gateway is connected", wall));
  open_ = false;
  return Done{};
}

}  // namespace troika::daemon
