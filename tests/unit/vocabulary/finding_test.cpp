#include "vocabulary/finding.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troika {
namespace {

constexpr Code kAll[] = {
#define CODE(name, severity, subject) Code::name,
#include "vocabulary/codes.def"
#undef CODE
};

TEST(Finding, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (const Code code : kAll) {
    EXPECT_TRUE(names.insert(name(code)).second) << name(code);
    const auto back = parse_code(name(code));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, code);
  }
  EXPECT_EQ(name(Code::HASH_MISMATCH), "HASH_MISMATCH");
  EXPECT_EQ(usual_severity(Code::HASH_MISMATCH), Severity::Error);
  EXPECT_EQ(usual_severity(Code::CANNOT_TELL), Severity::Info);
  EXPECT_FALSE(parse_code("hash_mismatch").ok());
  EXPECT_FALSE(parse_code("").ok());
}

TEST(Finding, WordsRoundTrip) {
  for (const Severity s : {Severity::Info, Severity::Warning, Severity::Error})
    EXPECT_EQ(*parse_severity(name(s)), s);
  for (const Verdict v : {Verdict::Ok, Verdict::Warning, Verdict::CannotTell, Verdict::Error})
    EXPECT_EQ(*parse_verdict(name(v)), v);
  EXPECT_FALSE(parse_severity("fatal").ok());
  EXPECT_FALSE(parse_verdict("good").ok());
}

Finding of(Code code, Severity severity) {
  Finding f = finding(code, "n", "s", "m");
  f.severity = severity;
  return f;
}

// error, then cannot_tell, then warning, then ok.
TEST(Finding, TheVerdictIsTheWorst) {
  EXPECT_EQ(verdict_of(std::vector<Finding>{}), Verdict::Ok);
  const Finding info = of(Code::IDLE, Severity::Info), doubt = of(Code::CANNOT_TELL, Severity::Info),
                warning = of(Code::SUSPECT, Severity::Warning), error = of(Code::WEDGED, Severity::Error);
  EXPECT_EQ(verdict_of({info}), Verdict::Ok);
  EXPECT_EQ(verdict_of({warning, info}), Verdict::Warning);
  EXPECT_EQ(verdict_of({warning, doubt, info}), Verdict::CannotTell);
  EXPECT_EQ(verdict_of({doubt, error, warning}), Verdict::Error);
}

TEST(Finding, ExitStatusesAreThoseThatScriptsRelyOn) {
  EXPECT_EQ(exit_status(Verdict::Ok), 0);
  EXPECT_EQ(exit_status(Verdict::Warning), 0);
  EXPECT_EQ(exit_status(Verdict::Error), 1);
  EXPECT_EQ(exit_status(Verdict::CannotTell), 4);
}

TEST(Finding, TextsOfFilesAreCutAtACharacter) {
  const std::string name = std::string(2000, 'n') + "\u20ac";
  const Finding one = finding(Code::CORRUPT_HEADER, "", name, std::string(5000, 'm'), "",
                              {{"tensor", std::string(9000, 't')}});
  EXPECT_EQ(one.subject, std::string(kLongestSubject - 3, 'n') + "...");
  EXPECT_EQ(one.message.size(), kLongestText);
  EXPECT_EQ(std::get<std::string>(one.evidence[0].second).size(), kLongestText);
  std::string euros;
  while (euros.size() < 100)
    euros += "\u20ac";
  for (std::size_t longest = 10; longest < 20; ++longest) {
    const std::string cut = clipped(euros, longest);
    EXPECT_LE(cut.size(), longest);
    EXPECT_EQ((cut.size() - 3) % 3, 0u);
  }
  EXPECT_EQ(clipped("short", 5), "short");
}

TEST(Finding, TheWorstIsKeptHoweverLargeItIs) {
  std::vector<Finding> all;
  for (int i = 0; i < 9; ++i)
    all.push_back(finding(Code::STALE_TOTAL_SIZE, "", "index", "information"));
  all.push_back(finding(Code::CORRUPT_HEADER, "", "s", std::string(4000, '\1')));
  std::vector<Finding> one = all;
  keep_worst(one, 5, 100);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(verdict_of(one), Verdict::Error);
  keep_worst(all, 5, 1u << 20);
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(verdict_of(all), Verdict::Error);
}

}  // namespace
}  // namespace troika
