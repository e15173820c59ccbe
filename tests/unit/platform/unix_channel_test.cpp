// Unix sockets: who may come, and whose the file is.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/unit/platform/net.hpp"

namespace troika::platform {
namespace {

class UnixChannel : public testing::Test {
 protected:
  Result<std::unique_ptr<Listener>> listen(ListenLimits limits = {}) {
    return listen_unix(
        io_.get_executor(), path_, [this](ChannelPtr channel) { return serve(std::move(channel)); }, limits);
  }
  asio::awaitable<void> serve(ChannelPtr channel) {
    peer_ = channel->peer();
    co_await echo(std::move(channel));
  }
  std::string try_echo() { return run(io_, round_trip()); }
  asio::awaitable<std::string> round_trip() {
    auto channel = co_await dial_unix(path_, kSoon);
    if (!channel.ok()) co_return channel.error().message();
    (*channel)->send(message("hello"));
    const auto frame = co_await (*channel)->read(kSoon);
    co_return frame.ok() ? frame->payload : frame.error().reason;
  }
  // Binds the path and goes away without removing it, as a killed process does.
  int bind_stale() {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
    return fd;
  }

  asio::io_context io_;
  Folder folder_;
  std::string path_ = folder_ / "control.sock";
  Peer peer_;
};

TEST_F(UnixChannel, PeersAreKnownByTheirCredentials) {
  const auto listener = listen();
  ASSERT_TRUE(listener.ok()) << listener.error().message();
  EXPECT_EQ((*listener)->port(), 0);
  EXPECT_EQ(try_echo(), "hello");
  EXPECT_EQ(peer_.identity.role, Role::Local);
  EXPECT_EQ(peer_.uid, ::geteuid());
  EXPECT_EQ(peer_.identity.name, "uid " + std::to_string(::geteuid()) + " pid " + std::to_string(::getpid()));
  EXPECT_EQ(peer_.address, path_);
}

TEST_F(UnixChannel, TheFileIsPrivateAndGoesWithTheListener) {
  auto listener = listen();
  ASSERT_TRUE(listener.ok());
  struct stat facts {};
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  listener->reset();
  EXPECT_NE(::stat(path_.c_str(), &facts), 0);
  EXPECT_TRUE(try_echo().starts_with("cannot connect to " + path_ + ": "));
}

TEST_F(UnixChannel, AStaleFileIsReplaced) {
  ::close(bind_stale());
  const auto listener = listen();
  ASSERT_TRUE(listener.ok()) << listener.error().message();
  EXPECT_EQ(try_echo(), "hello");
}

TEST_F(UnixChannel, ALiveListenerIsLeftAlone) {
  const auto first = listen();
  ASSERT_TRUE(first.ok());
  const auto second = listen();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().reason, "held by pid " + std::to_string(::getpid()));
  EXPECT_EQ(try_echo(), "hello");
}

TEST_F(UnixChannel, AStrangersLiveSocketIsLeftAlone) {
  const int fd = bind_stale();
  ASSERT_EQ(::listen(fd, 8), 0);
  const auto listener = listen();
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.error().reason, "another process answers there");
  ::close(fd);
}

TEST_F(UnixChannel, AFileThatIsNoSocketIsLeftAlone) {
  ASSERT_TRUE(write_file_durably(path_, "precious").ok());
  const auto listener = listen();
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.error().reason, "there is a file that is not a socket");
  EXPECT_EQ(content_of(path_), "precious");
}

TEST_F(UnixChannel, APathThatIsTooLongIsNamed) {
  path_ = folder_ / std::string(120, 'x');
  const auto listener = listen();
  ASSERT_FALSE(listener.ok());
  EXPECT_NE(listener.error().reason.find("1 to 107 bytes are allowed"), std::string::npos);
}

TEST_F(UnixChannel, AStrangersUidIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  const auto listener = listen();
  ASSERT_TRUE(listener.ok());
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setuid(kNobody) != 0) ::_exit(2);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) ::_exit(3);
    char byte = 0;
    ::_exit(::read(fd, &byte, 1) == 0 ? 0 : 4);  // closed without a word
  }
  int status = -1;
  for (int i = 0; i < 500 && ::waitpid(child, &status, WNOHANG) == 0; ++i)
    run(io_, pause(10ms));
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(peer_.identity.name.empty());
}

}  // namespace
}  // namespace troika::platform
