// Results to stdout, complaints to stderr.
#pragma once

#include <string_view>

#include "cli/command.hpp"
#include "vocabulary/result.hpp"

namespace troika::cli {

// To stdout, at once. Nobody reading any more ends the program as SIGPIPE does.
void print(std::string_view text);
// "troika: cannot ...: ..." to stderr, control characters escaped; with `json` also a report to stdout, as
// there is always one: CANNOT_TELL with the error. Returns `status`.
int complain(const Error& error, Exit status, bool json = false);

}  // namespace troika::cli
