// Signals that end a long command: they are noted, and every wait looks at the note.
#pragma once

namespace troika::cli {

// SIGINT, SIGTERM and SIGHUP are noted from now on; writing to a closed pipe is an error instead of the end.
void note_interrupts();
// The first signal that was noted; 0: none.
int interrupted_by();
// As shells tell of a program that the signal ended.
inline int exit_status_of(int signal) {
  return 128 + signal;
}

}  // namespace troika::cli
