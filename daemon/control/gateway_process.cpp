#include "daemon/control/gateway_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "daemon/gateway/program.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"

extern char** environ;

namespace troika::daemon {

namespace {

// The file's beginning; empty where there is none.
std::string words_of(const std::string& path) {
  auto read = platform::read_file(path, Bytes{1u << 20});
  if (!read.ok()) return {};
  std::string words = std::move(read).value();
  words.resize(std::min(words.size(), GatewayProcess::kMostWords));
  while (!words.empty() && words.back() == '\n')
    words.pop_back();
  return words;
}

}  // namespace

GatewayProcess::GatewayProcess(std::string program, std::string config, std::string lock_file,
                               std::string words_file)
    : program_(std::move(program)),
      config_(std::move(config)),
      lock_file_(std::move(lock_file)),
      words_file_(std::move(words_file)) {}

// Shared and for an instant: a gateway that just starts tries a few times.
bool GatewayProcess::someone_holds_the_lock() const {
  const int fd = ::open(lock_file_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held;
}

void GatewayProcess::reap() {
  if (child_ == 0) return;
  int status = 0;
  if (::waitpid(child_, &status, WNOHANG) != child_) return;
  const std::string how = WIFSIGNALED(status) ? "by signal " + std::to_string(WTERMSIG(status))
                                              : "with status " + std::to_string(WEXITSTATUS(status));
  platform::log("the gateway (pid " + std::to_string(child_) + ") ended " + how);
  child_ = 0;
  end_.emplace();
  end_->how = how;
  end_->words = words_of(words_file_);
  end_->bad_input = WIFEXITED(status) && WEXITSTATUS(status) == gateway::kBadInput;
  end_->was_asked = WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void GatewayProcess::tick(Instant now) {
  reap();
  const bool was_running = running_;
  running_ = child_ != 0 || someone_holds_the_lock();
  if (running_) {
    if (!was_running && child_ == 0) platform::log("a gateway runs already; it is taken over");
    if (now - started_ > kGood) pause_ = kFirstPause;
    return;
  }
  if (now >= next_start_) start(now);
}

void GatewayProcess::start(Instant now) {
  next_start_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLastPause);
  ::unlink(words_file_.c_str());  // of an earlier one
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_init(&actions);
  // A session of its own: signals to the leader's terminal or group are not for it. Nothing blocked or
  // ignored.
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // Else it would hold the leader's listeners open beyond the leader's end.
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  const std::array<const char*, 5> argv{program_.c_str(), "gateway", "--config", config_.c_str(), nullptr};
  const int failed = ::posix_spawn(&child_, program_.c_str(), &actions, &attributes,
                                   const_cast<char* const*>(argv.data()), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    child_ = 0;
    platform::log("cannot start the gateway: " + program_ + ": " + std::strerror(failed));
    return;
  }
  started_ = now;
  running_ = true;
  platform::log("gateway started: pid " + std::to_string(child_));
}

}  // namespace troika::daemon
