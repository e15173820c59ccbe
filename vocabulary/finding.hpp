// What a detector says: one code on one subject, with its evidence and what to do.
#pragma once

#include <cstddef>
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

// Longest texts of a finding, in bytes. What is longer is cut off and ends with "...": names in files that
// anybody may have written can have a hundred million.
inline constexpr std::size_t kLongestSubject = 1024;
inline constexpr std::size_t kLongestText = 4096;  // message, remedy, and each text of the evidence
std::string clipped(std::string text, std::size_t longest);
// A name out of a file, as part of a message: at most kLongestSubject bytes.
std::string short_name(std::string_view name);

// A finding of the code's usual severity, its texts clipped.
Finding finding(Code code, std::string node, std::string subject, std::string message,
                std::string remedy = {}, Evidence evidence = {});
// One that came from elsewhere.
Finding clipped(Finding finding);

// The verdict of a report. The worst of its findings: error, then cannot_tell, then warning, then ok.
enum class Verdict { Ok, Warning, CannotTell, Error };
std::string_view name(Verdict verdict);  // "ok", "warning", "cannot_tell", "error"
Result<Verdict> parse_verdict(std::string_view text);
Verdict verdict_of(const std::vector<Finding>& findings);
Verdict verdict_of(const Finding& finding);
// Before a list is cut: what decides the verdict stays. Equal ones keep their order.
void worst_first(std::vector<Finding>& findings);
// The worst of them: at most `most`, which as JSON have at most `bytes` together. One is kept in any case.
void keep_worst(std::vector<Finding>& findings, std::size_t most, std::size_t bytes);

// Exit status of `troika` for a verdict: 0 ok and warning, 1 error, 4 cannot tell.
int exit_status(Verdict verdict);

}  // namespace troika
