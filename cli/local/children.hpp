// Processes that this one starts, and what becomes of them.
//
// The owner of a Children is the only one in its process that waits for children, and their subreaper: what a
// killed process of a cluster leaves behind becomes its child too and is reaped at once, as init does it on a
// real machine.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::local {

struct Launch {
  std::string program;
  std::vector<std::string> arguments;              // without the program's name
  std::map<std::string, std::string> environment;  // added to this process's own
  std::string log;                                 // both outputs are appended to it
};

struct Ended {
  int code = 0;  // exit code where signal is 0
  int signal = 0;
};
std::string text(const Ended& ended);  // "exit 2", "signal 9 (Killed)"

class Children {
 public:
  Children();
  ~Children();  // ends nothing; stops reaping
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // In a session of its own (a terminal's Ctrl-C is not for it), no signal blocked or ignored, no other
  // descriptor open.
  Result<pid_t> spawn(const Launch& launch);
  // Absent: it runs, or never was a child.
  std::optional<Ended> ended(pid_t pid) const;
  std::optional<Ended> wait(pid_t pid, Duration limit) const;

 private:
  void reap();

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<pid_t, Ended> ended_;
  bool stop_ = false;
  std::thread reaper_;
};

}  // namespace troika::local
