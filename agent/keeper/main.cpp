// troika-keeper: one a stage. Small, static, without TLS: it must live as long as the stage, whatever happens
// to the rest of Troika.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "agent/keeper/keeper.hpp"

namespace {

constexpr const char* kUsage =
    "Usage: troika-keeper --run-dir DIR [--foreground]\n"
    "\n"
    "Starts the stage that DIR/spec describes, keeps its output in DIR/log, and writes DIR/exit when it has "
    "ended.\n"
    "Started by troika-agent; returns when the stage runs and goes on in the background until nothing of it "
    "is left.\n"
    "\n"
    "  --run-dir DIR   the stage's run directory\n"
    "  --foreground    do not go into the background\n"
    "  --help, --version\n"
    "\n"
    "SIGTERM stops the stage. Exit status: 0 good, 1 the stage could not be started, 2 usage.\n";

// The launcher waits for this: nothing is the start, text is why there was none.
int report_to_launcher(int pipe, const troika::Result<std::unique_ptr<troika::keeper::Keeper>>& keeper) {
  if (keeper.ok()) return 0;
  const std::string message = keeper.error().message() + "\n";
  [[maybe_unused]] const auto written = ::write(pipe, message.data(), message.size());
  return 1;
}

int keep(const std::string& directory, int pipe) {
  auto keeper = troika::keeper::Keeper::start(directory);
  const int failed = report_to_launcher(pipe, keeper);
  ::close(pipe);
  if (failed != 0) return failed;
  (*keeper)->run();
  return 0;
}

// The agent hands over its lock on DIR/lock as standard input. As long as this process lives the lock is
// held, so that an agent that comes later knows that the stage has a keeper, even before there is a record.
void keep_lock() {
  struct stat facts {};
  if (::fstat(STDIN_FILENO, &facts) == 0 && S_ISREG(facts.st_mode)) ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
}

void leave_terminal() {
  keep_lock();
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd)
    ::dup2(null, fd);
}

int keep_in_background(const std::string& directory) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    std::fprintf(stderr, "troika-keeper: cannot make a pipe: %s\n", std::strerror(errno));
    return 1;
  }
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) {
    std::fprintf(stderr, "troika-keeper: cannot fork: %s\n", std::strerror(errno));
    return 1;
  }
  if (child == 0) {
    ::close(ends[0]);
    leave_terminal();
    return keep(directory, ends[1]);
  }
  ::close(ends[1]);
  std::string message;
  char buffer[512];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) != 0;) {
    if (got < 0 && errno != EINTR) break;
    if (got > 0) message.append(buffer, static_cast<std::size_t>(got));
  }
  // The pipe also ends when the keeper dies before it could say anything: then it has an exit status already.
  int status = 0;
  if (message.empty() && ::waitpid(child, &status, WNOHANG) == 0) return 0;
  if (message.empty() && WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  if (message.empty()) message = "the keeper ended before the stage was started\n";
  std::fprintf(stderr, "troika-keeper: %s", message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string directory;
  bool foreground = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (word == "--version") {
      std::puts("troika-keeper " TROIKA_VERSION);
      return 0;
    }
    if (word == "--foreground") {
      foreground = true;
    } else if (word == "--run-dir" && i + 1 < argc) {
      directory = argv[++i];
    } else {
      std::fprintf(stderr, "troika-keeper: %s is not understood\n%s", word.c_str(), kUsage);
      return 2;
    }
  }
  if (directory.empty() || directory[0] != '/') {
    std::fprintf(stderr, "troika-keeper: --run-dir with an absolute path is needed\n%s", kUsage);
    return 2;
  }
  ::umask(0077);
  if (!foreground) return keep_in_background(directory);
  return keep(directory, ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
}
