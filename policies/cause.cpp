#include "policies/cause.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>

namespace troika::policies {
namespace {

template <class T>
T evidence_of(const Finding& finding, std::string_view name, T otherwise) {
  for (const auto& [key, value] : finding.evidence)
    if (key == name)
      if (const auto* held = std::get_if<T>(&value)) return *held;
  return otherwise;
}

}  // namespace

int nearness(const Finding& finding) {
  if (finding.severity != Severity::Error) return 0;
  if (finding.code == Code::NODE_LOST || finding.code == Code::NODE_REBOOTED) return 4;
  if (finding.code != Code::STAGE_DIED) return 2;
  if (evidence_of(finding, "signal", std::int64_t{0}) != 0 || !evidence_of(finding, "known", true)) return 3;
  return evidence_of(finding, "follows", false) ? 1 : 2;
}

void nearest_first(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return nearness(a) > nearness(b); });
}

}  // namespace troika::policies
