#include "vocabulary/finding.hpp"

#include <algorithm>
#include <array>

namespace troika {
namespace {

struct CodeFacts {
  std::string_view name;
  Severity severity;
};
constexpr std::array kCodes{
#define CODE(name, severity, subject) CodeFacts{#name, Severity::severity},
#include "vocabulary/codes.def"
#undef CODE
};

}  // namespace

std::string_view name(Code code) {
  return kCodes[static_cast<std::size_t>(code)].name;
}

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::Info:
      return "info";
    case Severity::Warning:
      return "warning";
    case Severity::Error:
      return "error";
  }
  broken_invariant("severity", __FILE__, __LINE__);
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok:
      return "ok";
    case Verdict::Warning:
      return "warning";
    case Verdict::CannotTell:
      return "cannot_tell";
    case Verdict::Error:
      return "error";
  }
  broken_invariant("verdict", __FILE__, __LINE__);
}

Severity usual_severity(Code code) {
  return kCodes[static_cast<std::size_t>(code)].severity;
}

Result<Code> parse_code(std::string_view text) {
  const auto found =
      std::find_if(kCodes.begin(), kCodes.end(), [&](const auto& c) { return c.name == text; });
  if (found == kCodes.end()) return Error{"read the finding code", std::string(text), "no such code"};
  return static_cast<Code>(found - kCodes.begin());
}

Result<Severity> parse_severity(std::string_view text) {
  for (const Severity s : {Severity::Info, Severity::Warning, Severity::Error})
    if (name(s) == text) return s;
  return Error{"read the severity", std::string(text), "info, warning or error is expected"};
}

Result<Verdict> parse_verdict(std::string_view text) {
  for (const Verdict v : {Verdict::Ok, Verdict::Warning, Verdict::CannotTell, Verdict::Error})
    if (name(v) == text) return v;
  return Error{"read the verdict", std::string(text), "ok, warning, cannot_tell or error is expected"};
}

Finding finding(Code code, std::string node, std::string subject, std::string message, std::string remedy,
                Evidence evidence) {
  return Finding{code,
                 usual_severity(code),
                 std::move(node),
                 std::move(subject),
                 std::move(message),
                 std::move(evidence),
                 std::move(remedy)};
}

Verdict verdict_of(const Finding& finding) {
  if (finding.severity == Severity::Error) return Verdict::Error;
  if (finding.code == Code::CANNOT_TELL) return Verdict::CannotTell;
  return finding.severity == Severity::Warning ? Verdict::Warning : Verdict::Ok;
}

Verdict verdict_of(const std::vector<Finding>& findings) {
  Verdict worst = Verdict::Ok;
  for (const Finding& one : findings)
    worst = std::max(worst, verdict_of(one));
  return worst;
}

void worst_first(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return verdict_of(a) > verdict_of(b); });
}

int exit_status(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok:
    case Verdict::Warning:
      return 0;
    case Verdict::Error:
      return 1;
    case Verdict::CannotTell:
      return 4;
  }
  broken_invariant("verdict", __FILE__, __LINE__);
}

}  // namespace troika
