#include "kernels/cpu/crew.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troika::kernels {
namespace {

TEST(Crew, CoversEveryIndexOnceWithAnyNumberOfThreads) {
  for (const std::size_t threads : {0U, 1U, 2U, 5U}) {
    Crew crew(threads);
    for (std::size_t n = 0; n < 40; ++n) {
      std::vector<int> seen(n);
      crew.each(n, [&](std::size_t begin, std::size_t end) {
        for (auto i = begin; i < end; ++i)
          ++seen[i];
      });
      EXPECT_EQ(seen, std::vector<int>(n, 1));
    }
  }
}

}  // namespace
}  // namespace troika::kernels
