// Every field of both files, wrong in turn by rule: another type, a misspelt neighbour, twice, and missing.
#include <gtest/gtest.h>

#include <set>

#include "config/agent.hpp"
#include "config/cluster.hpp"
#include "tests/unit/config/example.hpp"

namespace troika::config {
namespace {

struct File {
  const char* name;
  std::string_view good;
  std::vector<Problem> (*problems)(std::string_view text);
  std::set<std::string> required;  // of fields, indices left out
};

const File kFiles[] = {
    {"cluster.toml",
     kCluster,
     [](std::string_view text) { return parse_cluster(text, "cluster.toml").problems; },
     {"cluster.name", "model.name", "model.path", "model.manifest", "node.name", "replica.name",
      "replica.layers", "replica.nodes"}},
    {"agent.toml",
     kAgent,
     [](std::string_view text) { return parse_agent(text, "agent.toml").problems; },
     {"node.cluster", "node.name", "leader.addresses", "relay.advertise", "model.path", "engine.kind",
      "engine.program", "engine.link"}},
};

std::string without_index(std::string path) {
  const std::size_t open = path.find('[');
  if (open != std::string::npos) path.erase(open, path.find(']') - open + 1);
  return path;
}

std::string text_of(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems)
    text += problem.message() + "\n";
  return text;
}

// The problem with this key on this line.
const Problem* find(const std::vector<Problem>& problems, const std::string& key, std::uint32_t line) {
  for (const Problem& problem : problems)
    if (problem.key == key && problem.line == line) return &problem;
  return nullptr;
}

void PrintTo(const File& file, std::ostream* out) {
  *out << file.name;
}

class EveryField : public testing::TestWithParam<File> {};

TEST_P(EveryField, TheFileItselfIsGood) {
  EXPECT_EQ(text_of(GetParam().problems(GetParam().good)), "");
  EXPECT_GT(fields_of(GetParam().good).size(), 20u);
}

TEST_P(EveryField, AnotherTypeIsRefusedWithItsPlace) {
  for (const Line& field : fields_of(GetParam().good)) {
    // No field is a truth value; 1e3 is no whole number, and no text.
    for (const std::string& value : {std::string("true"), std::string("1979-05-27")}) {
      const auto problems = GetParam().problems(
          with_line(GetParam().good, field.number, field.key + " = " + value + "  # wrong"));
      const Problem* const problem = find(problems, field.path(), field.number);
      ASSERT_NE(problem, nullptr) << field.path() << "\n" << text_of(problems);
      EXPECT_EQ(problem->file, GetParam().name);
      EXPECT_EQ(problem->value, value);
      EXPECT_EQ(problem->column, field.key.size() + 4);
      EXPECT_NE(problem->expected.find("expected"), std::string::npos) << problem->message();
    }
  }
}

TEST_P(EveryField, AnEmptyTextOrListIsRefused) {
  const std::set<std::string> may_be_empty{"engine.arguments", "fabric.interfaces", "engine.environment",
                                           "fabric.link_gbps"};
  for (const Line& field : fields_of(GetParam().good)) {
    if (may_be_empty.count(without_index(field.path())) > 0) continue;
    for (const std::string& value : {std::string("\"\""), std::string("[]"), std::string("-1")}) {
      const auto problems =
          GetParam().problems(with_line(GetParam().good, field.number, field.key + " = " + value));
      EXPECT_NE(find(problems, field.path(), field.number), nullptr) << field.path() << " = " << value << "\n"
                                                                     << text_of(problems);
    }
  }
}

TEST_P(EveryField, AMisspeltKeyIsNamedWithTheRightOne) {
  for (const Line& field : fields_of(GetParam().good)) {
    const std::string misspelt = field.key + "e";
    auto lines = split(GetParam().good);
    lines.insert(lines.begin() + field.number, misspelt + " = 1");
    const auto problems = GetParam().problems(join(lines));
    const Problem* const problem = find(problems, field.section + "." + misspelt, field.number + 1);
    ASSERT_NE(problem, nullptr) << field.path() << "\n" << text_of(problems);
    EXPECT_EQ(problem->value, "1");
    EXPECT_EQ(problem->column, 1u);
    EXPECT_EQ(problem->expected, "no such key; did you mean \"" + field.key + "\"?");
    EXPECT_EQ(problems.size(), 1u) << text_of(problems);
  }
}

TEST_P(EveryField, AForeignKeyIsNamedWithThoseAllowed) {
  for (const Line& field : fields_of(GetParam().good)) {
    auto lines = split(GetParam().good);
    lines.insert(lines.begin() + field.section_number, "zzzzzzzzzzzz = [1, 2]");
    const auto problems = GetParam().problems(join(lines));
    const Problem* const problem = find(problems, field.section + ".zzzzzzzzzzzz", field.section_number + 1);
    ASSERT_NE(problem, nullptr) << field.path() << "\n" << text_of(problems);
    EXPECT_EQ(problem->value, "[1, 2]");
    EXPECT_TRUE(problem->expected.starts_with("no such key; allowed here: ")) << problem->expected;
    EXPECT_NE(problem->expected.find(field.key), std::string::npos) << problem->expected;
  }
}

TEST_P(EveryField, AKeyTwiceIsASyntaxErrorWithItsPlace) {
  for (const Line& field : fields_of(GetParam().good)) {
    auto lines = split(GetParam().good);
    lines.insert(lines.begin() + field.number, field.text);
    const auto problems = GetParam().problems(join(lines));
    ASSERT_EQ(problems.size(), 1u) << text_of(problems);
    EXPECT_EQ(problems[0].line, field.number + 1) << problems[0].message();
    EXPECT_TRUE(problems[0].expected.starts_with("not TOML: ")) << problems[0].message();
    EXPECT_NE(problems[0].expected.find(field.key), std::string::npos) << problems[0].message();
  }
}

TEST_P(EveryField, AMissingKeyIsNamedWhereItIsNeeded) {
  for (const Line& field : fields_of(GetParam().good)) {
    const auto problems = GetParam().problems(with_line(GetParam().good, field.number, ""));
    if (GetParam().required.count(without_index(field.path())) == 0) {
      EXPECT_EQ(text_of(problems), "") << field.path();
      continue;
    }
    const Problem* const problem = find(problems, field.path(), field.section_number);
    ASSERT_NE(problem, nullptr) << field.path() << "\n" << text_of(problems);
    EXPECT_EQ(problem->value, "");
    EXPECT_NE(problem->message().find(field.path() + " is missing: "), std::string::npos)
        << problem->message();
  }
}

TEST_P(EveryField, AMissingTableIsNamedWhereItIsNeeded) {
  // Without any line at all, everything that is required is named.
  const auto problems = GetParam().problems("");
  EXPECT_EQ(problems.empty(), false);
  for (const Problem& problem : problems) {
    EXPECT_EQ(problem.line, 0u);
    EXPECT_EQ(problem.value, "");
  }
}

TEST_P(EveryField, AWrongTableIsNamed) {
  // "x = 1" in place of a table, and a table in place of a list of tables.
  std::set<std::string> sections;
  for (const Line& field : fields_of(GetParam().good))
    sections.insert(field.section);
  for (const std::string& section : sections) {
    const std::string name = section.substr(0, section.find('['));
    const auto number = GetParam().problems(name + " = 1\n");
    const Problem* const problem = find(number, name, 1);
    ASSERT_NE(problem, nullptr) << text_of(number);
    EXPECT_EQ(problem->value, "1");
    const bool list = name != section;
    const auto other = GetParam().problems((list ? "[" + name + "]" : "[[" + name + "]]") + "\nx = 1\n");
    const Problem* const shape = find(other, name, 1);
    ASSERT_NE(shape, nullptr) << text_of(other);
    EXPECT_NE(shape->expected.find(list ? "[[" + name + "]] is expected" : "[" + name + "] is expected"),
              std::string::npos);
  }
  const auto unknown = GetParam().problems(std::string(GetParam().good) + "[surprise]\nx = 1\n");
  ASSERT_EQ(unknown.size(), 1u) << text_of(unknown);
  EXPECT_EQ(unknown[0].key, "surprise");
}

// An operator mends a file in one go.
TEST_P(EveryField, AllProblemsAreToldInTheOrderOfTheFile) {
  std::string text(GetParam().good);
  std::size_t wrong = 0;
  for (const Line& field : fields_of(GetParam().good)) {
    text = with_line(text, field.number, field.key + " = true");
    ++wrong;
  }
  const auto problems = GetParam().problems(text);
  EXPECT_GE(problems.size(), wrong);
  EXPECT_TRUE(std::is_sorted(problems.begin(), problems.end(),
                             [](const Problem& a, const Problem& b) { return a.line < b.line; }));
}

INSTANTIATE_TEST_SUITE_P(Files, EveryField, testing::ValuesIn(kFiles),
                         [](const auto& file) { return std::string(file.param.name).substr(0, 5); });

}  // namespace
}  // namespace troika::config
