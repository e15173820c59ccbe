// What a detector says: one code on one subject, with its evidence and what to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "vocabulary/result.hpp"

namespace troika {

enum class Severity { Info, Warning, Error };

enum class Code {
#define CODE(name, severity, subject) name,
#include "vocabulary/codes.def"
#undef CODE
};

std::string_view name(Code code);          // "HASH_MISMATCH"
std::string_view name(Severity severity);  // "error"
Severity usual_severity(Code code);
Result<Code> parse_code(std::string_view text);
Result<Severity> parse_severity(std::string_view text);

using EvidenceValue = std::variant<std::string, std::int64_t, double, bool>;
using Evidence = std::vector<std::pair<std::string, EvidenceValue>>;

struct Finding {
  Code code{};
  Severity severity{};
  std::string node;     // empty: no single node
  std::string subject;  // a file, stage, link, setting ...: what codes.def says for the code
  std::string message;  // one sentence for people, figures with units
  Evidence evidence;
  std::string remedy;  // what to do next; empty only where nothing is to be done

  bool operator==(const Finding&) const = default;
};

// A finding of the code's usual severity.
Finding finding(Code code, std::string node, std::string subject, std::string message,
                std::string remedy = {}, Evidence evidence = {});

// The verdict of a report. The worst of its findings: error, then cannot_tell, then warning, then ok.
enum class Verdict { Ok, Warning, CannotTell, Error };
std::string_view name(Verdict verdict);  // "ok", "warning", "cannot_tell", "error"
Result<Verdict> parse_verdict(std::string_view text);
Verdict verdict_of(const std::vector<Finding>& findings);
Verdict verdict_of(const Finding& finding);
// Before a list is cut: what decides the verdict stays. Equal ones keep their order.
void worst_first(std::vector<Finding>& findings);

// Exit status of `troika` for a verdict: 0 ok and warning, 1 error, 4 cannot tell.
int exit_status(Verdict verdict);

}  // namespace troika
