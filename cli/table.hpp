// Aligned columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal.hpp"

namespace troika::cli {

struct Cell {
  std::string text;  // already `shown`
  Tone tone = Tone::Plain;
};

class Table {
 public:
  explicit Table(std::vector<std::string> heads) : heads_(std::move(heads)) {}
  void row(std::vector<Cell> cells);  // as many as there are heads
  bool empty() const { return rows_.empty(); }

  // A head line and the rows, two spaces between columns, no trailing spaces. The last column is cut at
  // style.width.
  std::string text(const Style& style) const;

 private:
  std::vector<std::string> heads_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace troika::cli
