#include "config/problem.hpp"

namespace troika::config {

std::string Problem::message() const {
  std::string text = file;
  if (line > 0) text += ":" + std::to_string(line);
  if (line > 0 && column > 0) text += ":" + std::to_string(column);
  text += ": ";
  if (!key.empty()) text += key + (value.empty() ? " is missing" : " = " + value) + ": ";
  if (!code.empty()) text += code + ": ";
  return text + expected;
}

}  // namespace troika::config
