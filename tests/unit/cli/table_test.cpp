#include "cli/table.hpp"

#include <gtest/gtest.h>

namespace troika::cli {
namespace {

Table example() {
  Table table({"A", "LONG", "C"});
  table.row({{"1"}, {"x"}, {"end"}});
  table.row({{"22"}, {""}, {""}});
  table.row({{""}, {""}, {"分片"}});
  return table;
}

TEST(TableText, ColumnsAlignAndNoLineEndsWithSpaces) {
  EXPECT_EQ(example().text({false, 0}),
            "A   LONG  C\n"
            "1   x     end\n"
            "22\n"
            "          分片\n");
}

TEST(TableText, NoLineIsWiderThanTheTerminal) {
  EXPECT_EQ(example().text({false, 12}),
            "A   LONG  C\n"
            "1   x     e~\n"
            "22\n"
            "          ~\n")
      << "a wide character that does not fit is not halved";
}

TEST(TableText, ColourDoesNotMoveTheColumns) {
  Table table({"A", "B"});
  table.row({{"x", Tone::Bad}, {"y"}});
  EXPECT_EQ(table.text({true, 0}), "\033[2mA\033[0m  \033[2mB\033[0m\n\033[31mx\033[0m  y\n");
}

}  // namespace
}  // namespace troika::cli
