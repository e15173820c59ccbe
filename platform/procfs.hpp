// What /proc says about processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "platform/process.hpp"
#include "vocabulary/result.hpp"

namespace troika::platform {

struct ProcessStat {
  ProcessId id;
  int parent = 0;
  char state = '?';  // R, S, D, Z, ...
  std::uint32_t tasks = 0;
  bool kernel = false;  // a thread of the kernel: no program, no environment
  std::string command;  // comm, cut to 15 bytes by the kernel

  // A zombie holds nothing any more, unless it is only the first thread of a process that goes on.
  bool alive() const { return (state != 'Z' && state != 'X') || tasks > 1; }
};

// The reason of an error is "ended" when there is no such process.
Result<ProcessStat> read_stat(int pid);
// Every process that can be seen, in the order of their numbers; those that end meanwhile are left out.
Result<std::vector<ProcessStat>> read_processes();

// Words of the command line joined by spaces, at most `limit` bytes; empty: none (a kernel thread) or not
// readable.
std::string command_line(int pid, std::size_t limit = 256);

// The value of one variable of the environment a process was started with.
struct Variable {
  enum class Seen { Present, Absent, Ended, Denied };
  Seen seen = Seen::Absent;
  std::string value;
};
Variable read_variable(int pid, std::string_view name);

// Numbers of the last 10 s in percent, negative: the kernel does not tell. `root` is "/" or a captured tree.
struct MemoryPressure {
  double some = -1;
  double full = -1;
};
MemoryPressure read_memory_pressure(const std::string& root = "/");

// A file of /proc or /sys: read until the end or `limit`, whatever its size claims to be.
Result<std::string> read_virtual_file(const std::string& path, std::size_t limit = 1u << 20);

}  // namespace troika::platform
