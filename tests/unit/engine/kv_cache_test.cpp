#include "engine/native/kv_cache.hpp"

#include <gtest/gtest.h>

namespace troika::native {
namespace {

TEST(KvCache, GivesPagesTakesThemBackAndRefusesWhenFull) {
  KvCache cache(2, 3, 3 * kPageTokens + 5);
  EXPECT_EQ(cache.capacity_tokens(), 3U * kPageTokens);
  EXPECT_TRUE(cache.reserve(1, kPageTokens + 1).ok());
  EXPECT_EQ(cache.free_tokens(), kPageTokens);
  EXPECT_TRUE(cache.reserve(1, 2 * kPageTokens).ok());
  EXPECT_EQ(cache.free_tokens(), kPageTokens);
  EXPECT_TRUE(cache.reserve(2, 1).ok());
  EXPECT_FALSE(cache.reserve(3, 1).ok());
  cache.release(1);
  cache.release(1);
  EXPECT_EQ(cache.free_tokens(), 2U * kPageTokens);
  EXPECT_TRUE(cache.reserve(3, kPageTokens).ok());
}

TEST(KvCache, EntriesOfLayersAndPositionsAreDistinct) {
  KvCache cache(2, 3, 2 * kPageTokens);
  EXPECT_TRUE(cache.reserve(5, 2 * kPageTokens).ok());
  float next = 0;
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    for (std::uint64_t position = 0; position < 2 * kPageTokens; ++position) {
      for (int i = 0; i < 3; ++i)
        cache.entry(5, layer, position)[i] = next++;
    }
  }
  next = 0;
  std::vector<const float*> pages;
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    cache.pages_of(5, layer, pages);
    ASSERT_EQ(pages.size(), 2U);
    for (const auto* page : pages) {
      for (std::uint32_t i = 0; i < kPageTokens * 3; ++i)
        EXPECT_EQ(page[i], next++);
    }
  }
}

}  // namespace
}  // namespace troika::native
