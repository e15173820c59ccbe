// Text for people: where it goes, how wide it may be, and what must not reach a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troika::cli {

struct Style {
  bool colour = false;
  std::size_t width = 0;  // columns; 0: no limit (not a terminal)
};

// Of the terminal behind `fd`. Colour only on a terminal, without NO_COLOR and with a TERM other than dumb.
Style style_of(int fd);

enum class Tone { Plain, Good, Bad, Doubtful, Faint, Strong };

// Text from other machines: control characters and bytes that are not UTF-8 as \xNN.
std::string shown(std::string_view text);
// Columns it takes: one a code point, two for wide East Asian characters.
std::size_t columns(std::string_view utf8);
// At most `width` columns; what is cut off is told by a last '~'. width 0: all of it.
std::string cut(std::string_view utf8, std::size_t width);
// With the colour of `tone` around it, where `style` has colour.
std::string toned(std::string_view text, Tone tone, const Style& style);
// Words put into lines of at most `width` columns, each after `indent`; a longer word gets a line of its own.
// width 0: one line.
std::string wrapped(std::string_view text, std::string_view indent, std::size_t width);

}  // namespace troika::cli
