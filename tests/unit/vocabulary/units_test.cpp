#include "vocabulary/units.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace troika {
namespace {

// Bytes are no tokens, and a bare number is neither.
static_assert(!std::is_convertible_v<Bytes, Tokens>);
static_assert(!std::is_convertible_v<std::uint64_t, Bytes>);
static_assert(!std::is_convertible_v<Epoch, Term>);
static_assert(!std::is_convertible_v<Bytes, std::uint64_t>);

TEST(Units, CountAndCompare) {
  EXPECT_EQ(Bytes{2} + Bytes{3}, Bytes{5});
  EXPECT_EQ(Bytes{5} - Bytes{3}, Bytes{2});
  EXPECT_LT(Tokens{1}, Tokens{2});
  EXPECT_EQ(next(Epoch{}), Epoch{1});
  EXPECT_EQ(next(Term{41}), Term{42});
  EXPECT_EQ(Rank{}.count, 0u);
}

}  // namespace
}  // namespace troika
