// The layer partition. Modes 55, 70.
#include "policies/partition.hpp"

#include <gtest/gtest.h>

namespace troika::policies {
namespace {

using Layers = std::vector<std::uint32_t>;

TEST(Partition, DefaultGivesTheRemainderToTheLastRanks) {
  EXPECT_EQ(default_partition(43, 3), (Layers{14, 14, 15}));
  EXPECT_EQ(default_partition(44, 3), (Layers{14, 15, 15}));
  EXPECT_EQ(default_partition(42, 3), (Layers{14, 14, 14}));
  EXPECT_EQ(default_partition(43, 1), (Layers{43}));
  EXPECT_EQ(default_partition(3, 3), (Layers{1, 1, 1}));
  EXPECT_EQ(default_partition(43, 0), Layers{});
  EXPECT_EQ(default_partition(2, 3), Layers{});
}

TEST(Partition, EveryDefaultIsItsOwnProofAndCoversEachLayerOnce) {
  for (std::uint32_t layers = 1; layers <= 80; ++layers) {
    for (std::size_t ranks = 1; ranks <= layers && ranks <= 12; ++ranks) {
      const Layers partition = default_partition(layers, ranks);
      EXPECT_TRUE(check_partition("a", partition, ranks, layers).empty());
      std::uint32_t next = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const LayerRange range = layer_range(partition, Rank{rank});
        EXPECT_EQ(range.begin, next);
        next = range.end;
      }
      EXPECT_EQ(next, layers);
    }
  }
}

TEST(Partition, Mode70_MustAddUpToTheModelsLayers) {
  const auto findings = check_partition("a", {14, 14, 14}, 3, 43);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, Code::PARTITION_MISMATCH);
  EXPECT_NE(findings[0].message.find("42"), std::string::npos);
  EXPECT_NE(findings[0].message.find("43"), std::string::npos);
  EXPECT_NE(findings[0].remedy.find("[14, 14, 15]"), std::string::npos);
}

TEST(Partition, OneEntryANodeAndNoneZero) {
  EXPECT_EQ(check_partition("a", {21, 22}, 3, 43).size(), 1u);
  EXPECT_EQ(check_partition("a", {0, 21, 22}, 3, 43).size(), 1u);
  EXPECT_EQ(check_partition("a", {}, 3, 43).size(), 2u);
  EXPECT_EQ(check_partition("a", {4294967295u, 4294967295u, 2}, 3, 43).size(), 1u) << "the sum does not wrap";
}

TEST(MicroBatch, Mode55_Table) {
  struct Case {
    std::uint32_t max_running;
    std::size_t ranks;
    std::uint64_t chunked;
    bool bad;
  };
  for (const Case& c :
       {Case{8, 3, 4096, false}, Case{6, 3, 4096, false}, Case{5, 3, 4096, true}, Case{3, 3, 4096, true},
        Case{2, 3, 4096, true}, Case{0, 3, 4096, true}, Case{5, 3, 0, false}, Case{1, 1, 4096, false},
        Case{4, 2, 4096, false}, Case{3, 2, 4096, true}}) {
    const auto findings = check_micro_batch(c.max_running, c.ranks, Tokens{c.chunked});
    EXPECT_EQ(!findings.empty(), c.bad) << c.max_running << " over " << c.ranks;
    if (c.bad) {
      EXPECT_EQ(findings[0].code, Code::MICRO_BATCH_ONE);
    }
  }
}

}  // namespace
}  // namespace troika::policies
