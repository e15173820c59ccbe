// Signals that end the demo: they are noted, and every wait looks at the note.
#pragma once

namespace troika::demo {

// SIGINT, SIGTERM and SIGHUP are noted from now on; writing to a closed pipe is an error instead of the end.
void note_interrupts();
// The first signal that was noted; 0: none.
int interrupted_by();

}  // namespace troika::demo
