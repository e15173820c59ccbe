#include "agent/keeper/clients.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troika::keeper {
namespace {

// The path of a socket holds 107 bytes and run directories may be longer: it is reached through the
// descriptor.
sockaddr_un address_in(int directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + kSocketFile;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool trusted(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

}  // namespace

Result<Clients> Clients::listen(const RunDirectory& directory) {
  const std::string subject = directory.path() + "/" + kSocketFile;
  platform::UniqueFd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!fd) return system_error("make the socket", subject, errno);
  ::unlinkat(directory.fd(), kSocketFile, 0);
  const sockaddr_un address = address_in(directory.fd());
  const mode_t before = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::umask(before);
  if (bound != 0) return system_error("bind", subject, error);
  if (::listen(fd.get(), static_cast<int>(kMost)) != 0) return system_error("listen on", subject, errno);
  return Clients{std::move(fd)};
}

void Clients::add_to(std::vector<pollfd>& polled) const {
  polled.push_back({listener_.get(), POLLIN, 0});
  for (const Client& client : clients_) {
    const int output = client.out.empty() ? 0 : POLLOUT;
    polled.push_back({client.fd.get(), static_cast<short>(POLLIN | output), 0});
  }
}

void Clients::serve(const pollfd* polled, const Command& command, const Replay& replay) {
  const bool someone_comes = (polled->revents & POLLIN) != 0;
  for (Client& client : clients_) {
    ++polled;
    if ((polled->revents & POLLOUT) != 0) write_out(client);
    if ((polled->revents & (POLLIN | POLLHUP | POLLERR)) != 0) read_lines(client, command, replay);
  }
  clients_.remove_if([](const Client& client) { return client.closed; });
  if (someone_comes) accept_one();
}

void Clients::accept_one() {
  platform::UniqueFd fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!fd || clients_.size() >= kMost || !trusted(fd.get())) return;
  clients_.emplace_back().fd = std::move(fd);
}

void Clients::read_lines(Client& client, const Command& command, const Replay& replay) {
  char buffer[kLongestLine];
  const ssize_t got = ::read(client.fd.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    client.closed = true;
    return;
  }
  client.in.append(buffer, static_cast<std::size_t>(got));
  for (std::size_t end = 0; (end = client.in.find('\n')) != std::string::npos;) {
    const std::string line = client.in.substr(0, end);
    client.in.erase(0, end + 1);
    const Answer answer = command(line);
    queue(client, answer.line);
    if (!answer.follow) continue;
    client.follows = true;
    replay([&](const std::string& text) { queue(client, text); });
  }
  if (client.in.size() > kLongestLine) client.closed = true;
  write_out(client);
}

void Clients::queue(Client& client, const std::string& line) {
  if (client.out.size() + line.size() + 1 > kMostQueued) {
    client.closed = true;
    client.out.clear();
  }
  if (client.closed) return;
  client.out += line;
  client.out += '\n';
}

void Clients::write_out(Client& client) {
  while (!client.out.empty()) {
    const ssize_t done = ::send(client.fd.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      if (errno != EAGAIN) client.closed = true;
      return;
    }
    client.out.erase(0, static_cast<std::size_t>(done));
  }
}

void Clients::tell_followers(const std::string& line) {
  for (Client& client : clients_)
    if (client.follows) queue(client, line);
}

void Clients::show_output(const std::string& line) {
  for (Client& client : clients_) {
    if (!client.follows) continue;
    if (client.missed != 0 || client.out.size() > kMostQueued / 2)
      ++client.missed;
    else
      queue(client, "log " + line);
  }
}

void Clients::flush(const Replay& replay) {
  for (Client& client : clients_) {
    write_out(client);
    if (client.missed == 0 || !client.out.empty()) continue;
    queue(client, "gap " + std::to_string(std::exchange(client.missed, 0)));
    replay([&](const std::string& text) { queue(client, text); });
    write_out(client);
  }
  clients_.remove_if([](const Client& client) { return client.closed; });
}

bool Clients::queued() const {
  for (const Client& client : clients_)
    if (!client.out.empty() || client.missed != 0) return true;
  return false;
}

}  // namespace troika::keeper
