// Results to stdout, complaints to stderr.
#pragma once

#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "vocabulary/finding.hpp"
#include "vocabulary/result.hpp"

namespace troika::cli {

// To stdout, at once. Nobody reading any more ends the program as SIGPIPE does.
void print(std::string_view text);
// "troika: cannot ...: ..." and what to do to stderr, control characters escaped; with `json` also a report
// to stdout, as there is always one. Returns `status`.
int complain(const Finding& why, Exit status, bool json = false);
// The same of an error; see trouble().
int complain(const Error& error, Exit status, bool json = false, std::string remedy = {});

// Before anything is opened: a closed standard stream must not be the number of a file that is opened later.
// What is written to a closed standard output fails.
void hold_standard_streams();
// At the end: what is still held for standard output is written. The exit status, kWrong where it could not
// be.
int finish_output(int status);

}  // namespace troika::cli
