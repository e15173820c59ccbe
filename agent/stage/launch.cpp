#include "agent/stage/launch.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>

#include "platform/files.hpp"
#include "platform/process.hpp"

namespace troika::agent {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kLongestMessage = 4096;

platform::UniqueFd open_lock(const std::string& directory, int flags) {
  return platform::UniqueFd{::open((directory + "/" + keeper::kLockFile).c_str(), flags | O_CLOEXEC, 0600)};
}

std::string first_line(std::string text) {
  constexpr std::string_view kName = "troika-keeper: ";
  if (text.compare(0, kName.size(), kName) == 0) text.erase(0, kName.size());
  return text.substr(0, text.find('\n'));
}

}  // namespace

Status make_run_directory(const LaunchPlan& plan) {
  const std::string& directory = plan.directory;
  TROIKA_CHECK(platform::make_directories(directory.substr(0, directory.rfind('/')), 0700));
  if (::mkdir(directory.c_str(), 0700) != 0) return system_error("make the run directory", directory, errno);
  TROIKA_CHECK(platform::write_file_durably(directory + "/" + kStageFile, write(plan.file), 0600));
  if (!plan.link_key.empty())
    TROIKA_CHECK(
        platform::write_file_durably(directory + "/" + keeper::kLinkKeyFile, plan.link_key + "\n", 0600));
  return platform::write_file_durably(directory + "/" + keeper::kSpecFile, keeper::write(plan.spec), 0600);
}

asio::awaitable<Status> start_keeper(std::string program, std::string directory) {
  const platform::UniqueFd lock = open_lock(directory, O_RDWR | O_CREAT);
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    co_return system_error("lock", directory + "/" + keeper::kLockFile, errno);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) co_return system_error("make a pipe for", program, errno);
  platform::UniqueFd words{ends[0]};
  platform::UniqueFd words_child{ends[1]};
  platform::SpawnPlan plan;
  plan.argv = {program, "--run-dir", directory};
  plan.environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8"};
  plan.input = lock.get();
  plan.error = words_child.get();
  auto child = platform::spawn(plan);
  if (!child.ok()) co_return child.error();
  words_child.reset();

  const auto executor = co_await asio::this_coro::executor;
  boost::system::error_code error;
  asio::posix::stream_descriptor pipe{executor, words.release()};
  std::string message;
  co_await asio::async_read(pipe, asio::dynamic_buffer(message, kLongestMessage),
                            asio::redirect_error(asio::use_awaitable, error));
  asio::posix::stream_descriptor ended{executor, child->pidfd.release()};
  co_await ended.async_wait(asio::posix::stream_descriptor::wait_read,
                            asio::redirect_error(asio::use_awaitable, error));
  int status = 0;
  ::waitpid(child->id.pid, &status, WNOHANG);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) co_return Done{};
  if (message.empty()) message = "the keeper's launcher ended with status " + std::to_string(status);
  co_return Error{"start the stage in", directory, first_line(message)};
}

bool keeper_lives(const std::string& directory) {
  const platform::UniqueFd lock = open_lock(directory, O_RDWR);
  if (!lock) return false;
  // Taken and given back at once: nobody has it.
  return ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace troika::agent
