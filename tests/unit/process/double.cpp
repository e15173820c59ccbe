// A process with one habit that engines have, for tests of what finds and ends them.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>

namespace {

void* wait_for_ever(void*) {
  while (true)
    ::pause();
}

// The first thread ends, the process goes on: /proc shows a zombie.
[[noreturn]] void leader_exits() {
  pthread_t thread{};
  ::pthread_create(&thread, nullptr, wait_for_ever, nullptr);
  ::pthread_exit(nullptr);
}

// Forks again and again, each child leaving its parent behind: the pid is always another one.
[[noreturn]] void run_away() {
  ::signal(SIGCHLD, SIG_IGN);
  while (true) {
    const pid_t child = ::fork();
    if (child > 0) ::_exit(0);
    ::setsid();
    ::usleep(2000);
  }
}

// A server's child that forks workers all the time.
[[noreturn]] void breed() {
  ::signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < 200; ++i) {
    if (::fork() == 0) {
      ::alarm(60);
      wait_for_ever(nullptr);
    }
    ::usleep(500);
  }
  wait_for_ever(nullptr);
  ::abort();
}

}  // namespace

int main(int argc, char** argv) {
  const char* habit = argc > 1 ? argv[1] : "";
  ::alarm(120);  // never outlives a test run by much
  if (::strcmp(habit, "leader-exits") == 0) leader_exits();
  if (::strcmp(habit, "run-away") == 0) run_away();
  if (::strcmp(habit, "breed") == 0) breed();
  ::fprintf(stderr, "no such habit\n");
  return 2;
}
