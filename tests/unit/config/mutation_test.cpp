// Whatever a file holds, reading it ends with a configuration or with problems.
#include <gtest/gtest.h>

#include <random>

#include "config/agent.hpp"
#include "config/cluster.hpp"
#include "tests/unit/config/example.hpp"

namespace troika::config {
namespace {

template <class T>
void expect_sound(const Loaded<T>& loaded, const std::string& text) {
  EXPECT_NE(loaded.config.has_value(), !loaded.problems.empty()) << text;
  const auto lines = 1 + static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n'));
  for (const Problem& problem : loaded.problems) {
    EXPECT_LE(problem.line, lines + 1) << problem.message();
    EXPECT_FALSE(problem.expected.empty());
  }
}

std::string mutated(std::string text, std::mt19937& random) {
  static const std::vector<std::string> kPieces{"\"",
                                                "[",
                                                "]",
                                                "{",
                                                "}",
                                                "=",
                                                "\n",
                                                ".",
                                                ",",
                                                "#",
                                                "-",
                                                "'''",
                                                "\"\"\"",
                                                "\\u0000",
                                                "\xff",
                                                std::string(1, '\0'),
                                                "9999999999999999999",
                                                "1e400",
                                                "nan",
                                                "true",
                                                "[[",
                                                "]]",
                                                "\xc3\xbc",
                                                "[node]\n",
                                                "[[replica]]\n"};
  for (auto changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text.erase(at, 1 + random() % 20);
        break;
      case 1:
        text.insert(at, kPieces[random() % kPieces.size()]);
        break;
      case 2:
        text[at] = static_cast<char>(random());
        break;
      case 3:
        text.insert(at, text.substr(random() % text.size(), random() % 60));
        break;
    }
    if (text.empty()) text = "x";
  }
  return text;
}

TEST(Mutation, NoTextCrashesTheReader) {
  std::mt19937 random(20261130);
  for (int round = 0; round < 3000; ++round) {
    const std::string cluster = mutated(std::string(kCluster), random);
    expect_sound(parse_cluster(cluster, "c"), cluster);
    const std::string agent = mutated(std::string(kAgent), random);
    expect_sound(parse_agent(agent, "a"), agent);
    expect_sound(parse_agent(cluster, "a"), cluster);
  }
}

TEST(Mutation, EveryCutIsFine) {
  for (std::size_t size = 0; size < kCluster.size(); size += 3) {
    const std::string text(kCluster.substr(0, size));
    expect_sound(parse_cluster(text, "c"), text);
  }
}

TEST(Mutation, DeepNestingIsAnError) {
  const std::string text = "x = " + std::string(100'000, '[');
  expect_sound(parse_cluster(text, "c"), text);
  const std::string dotted = "[" + [] {
    std::string path = "a";
    for (int i = 0; i < 20'000; ++i)
      path += ".a";
    return path;
  }() + "]\n";
  expect_sound(parse_cluster(dotted, "c"), dotted);
}

}  // namespace
}  // namespace troika::config
