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

// At most: as control characters and others than ASCII are written when they are escaped.
std::size_t bytes_as_json(std::string_view text) {
  std::size_t sum = 0;
  for (const char c : text)
    sum += c == '"' || c == '\\' ? 2 : c >= 0x20 && c < 0x7f ? 1 : 6;
  return sum;
}
std::size_t bytes_as_json(const Finding& finding) {
  constexpr std::size_t kOfFrame = 256, kOfValue = 64;
  std::size_t sum = kOfFrame + bytes_as_json(finding.node) + bytes_as_json(finding.subject) +
                    bytes_as_json(finding.message) + bytes_as_json(finding.remedy);
  for (const auto& [key, value] : finding.evidence) {
    sum += kOfValue + bytes_as_json(key);
    if (const auto* text = std::get_if<std::string>(&value)) sum += bytes_as_json(*text);
  }
  return sum;
}

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
  return clipped(Finding{code, usual_severity(code), std::move(node), std::move(subject), std::move(message),
                         std::move(evidence), std::move(remedy)});
}

Finding clipped(Finding finding) {
  const auto clip = [](std::string& text, std::size_t longest) { text = clipped(std::move(text), longest); };
  clip(finding.node, kLongestSubject);
  clip(finding.subject, kLongestSubject);
  clip(finding.message, kLongestText);
  clip(finding.remedy, kLongestText);
  for (auto& [key, value] : finding.evidence) {
    clip(key, kLongestSubject);
    if (auto* text = std::get_if<std::string>(&value)) clip(*text, kLongestText);
  }
  return finding;
}

std::string clipped(std::string text, std::size_t longest) {
  constexpr std::string_view kMore = "...";
  if (text.size() <= longest) return text;
  std::size_t end = longest - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)  // not within a character
    --end;
  text.resize(end);
  return text.append(kMore);
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

std::string short_name(std::string_view name) {
  return clipped(std::string(name.substr(0, kLongestSubject + 1)), kLongestSubject);
}

void keep_worst(std::vector<Finding>& findings, std::size_t most, std::size_t bytes) {
  worst_first(findings);
  std::size_t kept = 0, sum = 0;
  while (kept < std::min(most, findings.size())) {
    sum += bytes_as_json(findings[kept]);
    if (kept > 0 && sum > bytes) break;
    ++kept;
  }
  findings.resize(kept);
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
