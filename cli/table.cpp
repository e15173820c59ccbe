#include "cli/table.hpp"

#include <algorithm>

#include "vocabulary/result.hpp"

namespace troika::cli {

void Table::row(std::vector<Cell> cells) {
  TROIKA_INVARIANT(cells.size() == heads_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(const Style& style) const {
  std::vector<std::size_t> widths;
  for (const std::string& head : heads_)
    widths.push_back(columns(head));
  for (const auto& cells : rows_)
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], columns(cells[i].text));

  const auto line = [&](const std::vector<Cell>& cells) {
    std::string out;
    std::size_t used = 0;
    std::size_t pad = 0;  // owed before the next text: no spaces at the end of a line
    for (std::size_t i = 0; i < cells.size(); ++i) {
      std::string text = cells[i].text;
      if (style.width != 0) {
        if (used + pad >= style.width) break;
        text = cut(text, style.width - used - pad);
      }
      if (!text.empty()) {
        out.append(pad, ' ');
        out += toned(text, cells[i].tone, style);
        used += pad + columns(text);
        pad = 0;
      }
      pad += widths[i] - std::min(widths[i], columns(text)) + 2;
    }
    return out + "\n";
  };

  std::vector<Cell> heads;
  for (const std::string& head : heads_)
    heads.push_back({head, Tone::Faint});
  std::string out = line(heads);
  for (const auto& cells : rows_)
    out += line(cells);
  return out;
}

}  // namespace troika::cli
