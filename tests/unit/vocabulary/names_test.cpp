#include "vocabulary/names.hpp"

#include <gtest/gtest.h>

namespace troika {
namespace {

TEST(Names, WhatStandsInFilesAndCertificatesIsPlain) {
  for (const char* good : {"a", "0", "spark-1", "a-b-c", "x0"})
    EXPECT_TRUE(check_name("node", good).ok()) << good;
  EXPECT_TRUE(check_name("node", std::string(63, 'a')).ok());
  for (const char* bad : {"", "-a", "a-", "A", "a_b", "a.b", "a/b", "..", "a b", "ä", "a\n"})
    EXPECT_FALSE(check_name("node", bad).ok()) << bad;
  EXPECT_FALSE(check_name("node", std::string(64, 'a')).ok());
  EXPECT_FALSE(check_name("node", std::string_view("a\0b", 3)).ok());
  EXPECT_EQ(check_name("node", "A").error().message(),
            "cannot accept the node name \"A\": 1 to 63 of a-z, 0-9 and '-' are expected, a letter or digit "
            "first and "
            "last");
}

TEST(Names, StagesRoundTrip) {
  const auto stage = parse_stage_id("a/12");
  ASSERT_TRUE(stage.ok());
  EXPECT_EQ(*stage, (StageId{"a", Rank{12}}));
  EXPECT_EQ(text(*stage), "a/12");
  for (const char* bad : {"", "a", "a/", "/0", "a/-1", "a/x", "a/0/", "a/ 0", "A/0", "a/4294967296", "a//0"})
    EXPECT_FALSE(parse_stage_id(bad).ok()) << bad;
}

}  // namespace
}  // namespace troika
