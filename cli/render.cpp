#include "cli/render.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "cli/table.hpp"
#include "vocabulary/finding.hpp"
#include "vocabulary/time.hpp"

namespace troika::cli {
namespace {

using protocol::Incident;

struct Scale {
  std::string_view unit;
  double size;
};
constexpr std::array<Scale, 5> kScales{
    {{"B", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}}};

const Scale& scale_of(Bytes bytes) {
  const Scale* fit = &kScales[0];
  for (const Scale& scale : kScales)
    if (static_cast<double>(bytes.count) >= scale.size) fit = &scale;
  return *fit;
}

Tone tone_of(Severity severity) {
  switch (severity) {
    case Severity::Info:
      return Tone::Plain;
    case Severity::Warning:
      return Tone::Doubtful;
    case Severity::Error:
      return Tone::Bad;
  }
  return Tone::Plain;
}

std::string lasted(const Incident& incident) {
  if (incident.closed.empty()) return "open";
  const auto from = parse_rfc3339(incident.opened);
  const auto to = parse_rfc3339(incident.closed);
  if (!from.ok() || !to.ok()) return "unknown";
  return seconds_text(std::chrono::duration<double>(*to - *from).count());
}

std::string codes(const Incident& incident) {
  std::string out;
  for (const Finding& finding : incident.findings) {
    const std::string one{name(finding.code)};
    if ((", " + out + ",").find(", " + one + ",") != std::string::npos) continue;
    out += (out.empty() ? "" : ", ") + one;
  }
  return out;
}

std::string value_text(const EvidenceValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return shown(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:g}", *real);
  return std::get<bool>(value) ? "yes" : "no";
}

const EvidenceValue* value_of(const Evidence& evidence, std::string_view key) {
  for (const auto& [name, value] : evidence)
    if (name == key) return &value;
  return nullptr;
}

// The exit status that a keeper saw, in words; empty: the evidence holds none.
std::string ending_text(const Evidence& evidence) {
  const auto whole = [&](std::string_view key) {
    const EvidenceValue* const value = value_of(evidence, key);
    return value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  };
  const std::int64_t* const code = whole("code");
  const std::int64_t* const signal = whole("signal");
  if (code == nullptr || signal == nullptr) return "";
  const EvidenceValue* const known = value_of(evidence, "known");
  if (known != nullptr && *known == EvidenceValue{false}) return "nobody saw how it ended";
  if (*signal == 0) return fmt::format("ended with code {}", *code);
  const char* const short_name = ::sigabbrev_np(static_cast<int>(*signal));
  return fmt::format("ended by signal {}{}", *signal,
                     short_name == nullptr ? "" : fmt::format(" (SIG{})", short_name));
}

std::string evidence_text(const Evidence& evidence) {
  std::string out = ending_text(evidence);
  const bool told = !out.empty();
  for (const auto& [key, value] : evidence) {
    if (told && (key == "code" || key == "signal" || key == "known")) continue;
    out += (out.empty() ? "" : ", ") + shown(key) + " = " + value_text(value);
  }
  return out;
}

}  // namespace

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "unknown";
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
  return fmt::format("{}d{:02}h", whole / 86400, whole % 86400 / 3600);
}

std::string bytes_text(Bytes bytes) {
  const Scale& scale = scale_of(bytes);
  if (scale.size == 1) return fmt::format("{} B", bytes.count);
  return fmt::format("{:.1f} {}", static_cast<double>(bytes.count) / scale.size, scale.unit);
}

std::string share_text(Bytes part, Bytes whole) {
  const Scale& scale = scale_of(whole);
  const int digits = scale.size == 1 ? 0 : 1;
  return fmt::format("{:.{}f} of {:.{}f} {}", static_cast<double>(part.count) / scale.size, digits,
                     static_cast<double>(whole.count) / scale.size, digits, scale.unit);
}

std::string render_finding(const Finding& finding, const Style& style) {
  const std::string what = fmt::format("{} {}", name(finding.severity), name(finding.code));
  std::string where = finding.node.empty() ? "" : " " + shown(finding.node);
  if (!finding.subject.empty() && finding.subject != finding.node) where += " " + shown(finding.subject);
  std::string text = wrapped(what + where + ": " + shown(finding.message), "    ", style.width);
  if (style.colour) text.replace(4, what.size(), toned(what, tone_of(finding.severity), style));
  text += "\n";
  if (!finding.remedy.empty()) text += wrapped("do: " + shown(finding.remedy), "      ", style.width) + "\n";
  return text;
}

std::string render_incidents(const std::vector<Incident>& incidents, const Style& style) {
  if (incidents.empty()) return "no incidents\n";
  Table table({"ID", "OPENED", "LASTED", "SUBJECT", "CODES", "TITLE"});
  for (const Incident& one : incidents)
    table.row({{std::to_string(one.id)},
               {shown(one.opened)},
               {lasted(one), one.closed.empty() ? Tone::Bad : Tone::Plain},
               {shown(one.subject)},
               {codes(one)},
               {shown(one.title)}});
  return table.text(style);
}

std::string render_incident(const Incident& incident, const Style& style) {
  std::string out =
      toned(fmt::format("incident {}: {}", incident.id, shown(incident.title)), Tone::Strong, style) + "\n";
  out += "  subject  " + shown(incident.subject) + "\n";
  out += "  opened   " + shown(incident.opened) + "\n";
  out += "  closed   " +
         (incident.closed.empty() ? toned("open", Tone::Bad, style)
                                  : shown(incident.closed) + " (after " + lasted(incident) + ")") +
         "\n";
  out += "  findings\n";
  for (const Finding& finding : incident.findings) {
    out += render_finding(finding, style);
    const std::string evidence = evidence_text(finding.evidence);
    if (!evidence.empty()) out += wrapped("seen: " + evidence, "      ", style.width) + "\n";
  }
  if (incident.findings.empty()) out += "    none\n";
  out += "  actions\n";
  for (const std::string& action : incident.actions)
    out += wrapped(shown(action), "    ", style.width) + "\n";
  if (incident.actions.empty()) out += "    none\n";
  return out;
}

}  // namespace troika::cli
