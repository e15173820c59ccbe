#include "cli/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace troika::cli {
namespace {

std::atomic<int> noted = 0;
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void note(int signal) {
  int none = 0;
  noted.compare_exchange_strong(none, signal);
}

}  // namespace

void note_interrupts() {
  struct sigaction action {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int interrupted_by() {
  return noted;
}

}  // namespace troika::cli
