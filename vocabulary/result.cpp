#include "vocabulary/result.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace troika {

std::string Error::message() const {
  std::string text = "cannot " + doing;
  if (!subject.empty()) text += " " + subject;
  if (!reason.empty()) text += ": " + reason;
  return text;
}

Error system_error(std::string doing, std::string subject, int errno_value) {
  return Error{std::move(doing), std::move(subject), std::strerror(errno_value)};
}

void broken_invariant(const char* what, const char* file, int line) {
  std::fprintf(stderr, "troika: broken invariant: %s (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace troika
