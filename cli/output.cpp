#include "cli/output.hpp"

#include <cstdio>

#include "cli/report.hpp"
#include "cli/terminal.hpp"

namespace troika::cli {

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  std::fputs("troika: cannot write to standard output\n", stderr);
  std::_Exit(kWrong);
}

int complain(const Error& error, Exit status, bool json) {
  std::fprintf(stderr, "troika: %s\n", shown(error.message()).c_str());
  if (json) print(document(report({finding(Code::CANNOT_TELL, "", error.subject, error.message())}, {})));
  return status;
}

}  // namespace troika::cli
