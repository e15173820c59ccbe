#include "cli/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

#include "cli/report.hpp"
#include "cli/terminal.hpp"

namespace troika::cli {
namespace {

constexpr const char* kCannotWrite = "troika: cannot write to standard output\n";

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  std::fputs(kCannotWrite, stderr);
  std::_Exit(kWrong);
}

int complain(const Finding& why, Exit status, bool json) {
  std::fprintf(stderr, "troika: %s\n", shown(why.message).c_str());
  if (!why.remedy.empty()) std::fprintf(stderr, "  do: %s\n", shown(why.remedy).c_str());
  if (json) print(document(report({why}, {})));
  return status;
}

int complain(const Error& error, Exit status, bool json, std::string remedy) {
  return complain(trouble(error, status, std::move(remedy)), status, json);
}

void hold_standard_streams() {
  // For reading only: a write to it is an error, as it was to the closed one.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)::open("/dev/null", O_RDONLY);
}

int finish_output(int status) {
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written || status != kGood) return status;  // what went wrong before was told
  std::fputs(kCannotWrite, stderr);
  return kWrong;
}

}  // namespace troika::cli
