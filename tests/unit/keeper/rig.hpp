// A run directory with a real keeper in it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include "agent/keeper/record.hpp"
#include "platform/tree.hpp"
#include "tests/unit/process/wait.hpp"

namespace troika::keeper {

using platform::eventually;
using platform::Folder;

// A client of the keeper's socket.
class Client {
 public:
  explicit Client(const std::string& directory) {
    const platform::UniqueFd folder{::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/" + kSocketFile;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  bool connected() const { return connected_; }
  void send(const std::string& text) { (void)::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  // The next line; nothing: closed, or nothing for a while.
  std::optional<std::string> line() {
    while (true) {
      const std::size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        std::string out = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return out;
      }
      pollfd poll{fd_.get(), POLLIN, 0};
      char part[4096];
      if (::poll(&poll, 1, 30'000) != 1) return std::nullopt;
      const ssize_t got = ::read(fd_.get(), part, sizeof part);
      if (got <= 0) return std::nullopt;
      buffer_.append(part, static_cast<std::size_t>(got));
    }
  }
  // Lines until one begins so; nothing: it did not come.
  std::optional<std::string> line_with(const std::string& words) {
    while (auto one = line())
      if (one->find(words) != std::string::npos) return one;
    return std::nullopt;
  }
  std::string ask(const std::string& command) {
    send(command + "\n");
    return line().value_or("closed");
  }

 private:
  platform::UniqueFd fd_;
  std::string buffer_;
  bool connected_ = false;
};

class KeeperTest : public testing::Test {
 protected:
  KeeperTest() {
    spec_.mark = "test/" + platform::random_hex(6) + "/a/0/1";
    spec_.environment = {"PATH=/usr/bin:/bin"};
    spec_.cgroup = "troika-test-" + platform::random_hex(6);
  }
  ~KeeperTest() override {
    if (record_) (void)platform::signal_process(record_->keeper, SIGKILL);
    (void)platform::kill_tree({spec_.mark, 0, record_ ? record_->cgroup : "", 0}, std::chrono::seconds{30});
    if (!record_ || record_->cgroup.empty()) return;
    ::rmdir(record_->cgroup.c_str());
  }

  std::string directory() const { return folder_.path(); }

  // Exit status of the launcher.
  int launch(const std::string& script) {
    spec_.argv = {"/bin/sh", "-c", script};
    return launch();
  }
  int launch() {
    EXPECT_TRUE(platform::write_file_durably(folder_ / kSpecFile, write(spec_), 0600).ok());
    auto plan = platform::plan_of({KEEPER_PROGRAM, "--run-dir", directory()});
    const platform::UniqueFd words{::open((folder_ / "words").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
    plan.error = words.get();
    const auto child = platform::spawn(plan);
    EXPECT_TRUE(child.ok()) << child.error().message();
    const int status = platform::wait_status(*child);
    if (const auto text = platform::read_file(folder_ / kRecordFile, Bytes{65536}); text.ok()) {
      const auto record = read_record(*text);
      EXPECT_TRUE(record.ok());
      record_ = *record;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string words() const { return platform::content_of(folder_ / "words"); }

  std::optional<Exit> exit_record() const {
    const auto text = platform::read_file(folder_ / kExitFile, Bytes{65536});
    if (!text.ok()) return std::nullopt;
    const auto exit = read_exit(*text);
    EXPECT_TRUE(exit.ok());
    return *exit;
  }
  bool keeper_gone() const { return !platform::alive(record_->keeper); }
  bool tree_gone() const {
    const auto tree = platform::find_tree({spec_.mark, 0, record_->cgroup, 0});
    return tree.ok() && tree->members.empty();
  }
  std::string log() const {
    std::string text;
    for (const char* name : {kOldLogFile, kLogFile})
      if (const auto part = platform::read_file(folder_ / name, Bytes{256u << 20}); part.ok()) text += *part;
    return text;
  }

  Folder folder_;
  Spec spec_;
  std::optional<Record> record_;
};

}  // namespace troika::keeper
