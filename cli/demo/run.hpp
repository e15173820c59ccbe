// The demo from its first line to its last, and the end of one that was left running.
#pragma once

#include <string>

namespace troika::demo {

struct RunOptions {
  std::string directory;  // empty: a new one in the temp folder
  std::string programs;   // empty: see find_programs
  std::string json;       // file for the measured facts; empty: none
  bool keep = false;
};

// Exit status: 0 every step was seen, 1 one was not, 2 it could not begin, 128 + signal when interrupted.
int run_demo(const RunOptions& options);

// Ends the cluster in `directory` that --keep left; empty: the only one there is. Exit status: 0 nothing is
// left, 1 something is, 2 there is none, or its demo still runs.
int stop_kept(std::string directory);

}  // namespace troika::demo
