#include "tests/unit/engine/stage_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>

#include "engine/maker/model_maker.hpp"
#include "tests/unit/engine/temporary_directory.hpp"

namespace troika {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(60);

const TemporaryDirectory& scratch() {
  static const TemporaryDirectory directory;
  return directory;
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

HttpAnswer parse_answer(const std::string& text) {
  HttpAnswer answer;
  const auto end = text.find("\r\n\r\n");
  if (end == std::string::npos || text.size() < 12) return answer;
  answer.head = text.substr(0, end);
  answer.status = std::stoi(text.substr(9, 3));
  auto rest = text.substr(end + 4);
  if (answer.head.find("chunked") == std::string::npos) {
    answer.body = rest;
    return answer;
  }
  for (;;) {
    const auto line = rest.find("\r\n");
    if (line == std::string::npos) break;
    const auto length = std::stoul(rest.substr(0, line), nullptr, 16);
    if (length == 0) break;
    answer.body += rest.substr(line + 2, length);
    rest = rest.substr(line + 2 + length + 2);
  }
  return answer;
}

HttpAnswer ask(int port, const std::string& request) {
  RawConnection connection(port);
  connection.send(request);
  return parse_answer(connection.read_all());
}

}  // namespace

const std::string& tiny_model_directory() {
  static const std::string model = [] {
    const auto path = scratch().path() + "/model";
    const auto made = maker::make_model(path, maker::tiny_model());
    EXPECT_TRUE(made.ok());
    return path;
  }();
  return model;
}

const std::string& link_key_path() {
  static const std::string path = [] {
    auto name = scratch().path() + "/key";
    std::ofstream(name) << std::string(64, 'a') << "\n";
    return name;
  }();
  return path;
}

std::vector<int> free_ports(std::size_t count) {
  std::vector<int> sockets;
  std::vector<int> ports;
  for (std::size_t i = 0; i < count; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto address = loopback(0);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
    sockets.push_back(fd);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int fd : sockets)
    ::close(fd);
  return ports;
}

StageProcess::StageProcess(const std::vector<std::string>& arguments) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  std::vector<char*> argv{const_cast<char*>(TROIKA_STAGE)};
  for (const auto& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(pipe[1], STDERR_FILENO);
    ::dup2(pipe[1], STDOUT_FILENO);
    ::execv(TROIKA_STAGE, argv.data());
    ::_exit(127);
  }
  ::close(pipe[1]);
  output_ = pipe[0];
}

StageProcess::~StageProcess() {
  if (!status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(output_);
}

bool StageProcess::read_more(int timeout_ms) {
  pollfd waiting{output_, POLLIN, 0};
  if (::poll(&waiting, 1, timeout_ms) <= 0) return false;
  std::array<char, 4096> buffer{};
  const auto got = ::read(output_, buffer.data(), buffer.size());
  if (got <= 0) return false;
  log_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

bool StageProcess::wait_for_line(const std::string& text) {
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    const auto at = log_.find(text);
    if (at != std::string::npos && log_.find('\n', at) != std::string::npos) return true;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || !read_more(static_cast<int>(left))) return false;
  }
}

int StageProcess::wait() {
  if (!status_) {
    const auto deadline = Clock::now() + kPatience;
    while (Clock::now() < deadline && read_more(static_cast<int>(kPatience.count()) * 1000)) {
    }
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) return -1;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return *status_;
}

void StageProcess::signal(int number) const {
  ::kill(pid_, number);
}

int StageProcess::api_port() const {
  const auto at = log_.find("api=127.0.0.1:");
  return at == std::string::npos ? -1 : std::stoi(log_.substr(at + 14));
}

Replica::Replica(int ranks, const std::vector<std::string>& more) {
  const std::vector<std::string> layers =
      ranks == 1 ? std::vector<std::string>{"0:5"} : std::vector<std::string>{"0:2", "2:4", "4:5"};
  const auto ports = free_ports(static_cast<std::size_t>(ranks));
  const auto at = [&](int rank) {
    return "127.0.0.1:" + std::to_string(ports[static_cast<std::size_t>(rank % ranks)]);
  };
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> arguments{"--model",
                                       tiny_model_directory(),
                                       "--replica",
                                       "a",
                                       "--rank",
                                       std::to_string(rank),
                                       "--ranks",
                                       std::to_string(ranks),
                                       "--epoch",
                                       "7",
                                       "--layers",
                                       layers[static_cast<std::size_t>(rank)],
                                       "--cluster",
                                       "lab",
                                       "--served-model-name",
                                       "tiny"};
    if (ranks > 1) {
      for (const auto& argument : {std::string("--link-listen"), at(rank), std::string("--link-next"),
                                   at(rank + 1), std::string("--link-key-file"), link_key_path()}) {
        arguments.push_back(argument);
      }
    }
    if (rank == 0) arguments.insert(arguments.end(), {"--api", "127.0.0.1:0"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    stages.push_back(std::make_unique<StageProcess>(arguments));
  }
}

bool Replica::ready() {
  for (auto& stage : stages) {
    if (!stage->wait_for_line("ready rank=")) return false;
  }
  return true;
}

RawConnection::RawConnection(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const auto address = loopback(port);
  EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const timeval limit{60, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

RawConnection::~RawConnection() {
  ::close(fd_);
}

void RawConnection::send(const std::string& bytes) const {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const auto count = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

bool RawConnection::read_more() {
  std::array<char, 65536> buffer{};
  const auto got = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  received_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

bool RawConnection::read_until(const std::string& text) {
  while (received_.find(text) == std::string::npos) {
    if (!read_more()) return false;
  }
  return true;
}

std::string RawConnection::read_all() {
  while (read_more()) {
  }
  return received_;
}

HttpAnswer get(int port, const std::string& path) {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

std::string post_text(const std::string& path, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

HttpAnswer post(int port, const std::string& path, const std::string& body) {
  return ask(port, post_text(path, body));
}

long metric(int port, const std::string& name) {
  const auto text = get(port, "/metrics").body;
  const auto at = text.find("\ntroika_stage_" + name + " ");
  return at == std::string::npos ? -1 : std::stol(text.substr(at + name.size() + 15));
}

}  // namespace troika
