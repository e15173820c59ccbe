// One line of text from its parts: words as they are, numbers in decimal.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary/units.hpp"

namespace troika::policies {

inline void add_to_line(std::string& out, std::string_view word) {
  out.append(word);
}
inline void add_to_line(std::string& out, std::integral auto number) {
  out.append(std::to_string(number));
}
template <class Tag, class Rep>
void add_to_line(std::string& out, Quantity<Tag, Rep> quantity) {
  out.append(std::to_string(quantity.count));
}

template <class... Parts>
std::string line(const Parts&... parts) {
  std::string out;
  (add_to_line(out, parts), ...);
  return out;
}

// "[14, 14, 15]"
inline std::string listed(const std::vector<std::uint32_t>& layers) {
  std::string out;
  for (const std::uint32_t n : layers)
    out += line(out.empty() ? "" : ", ", n);
  return "[" + out + "]";
}

}  // namespace troika::policies
