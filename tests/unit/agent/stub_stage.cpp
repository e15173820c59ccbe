// A stage of the native engine without a model, for tests of the agent: the same command line, log lines and
// API.
//
// STUB_HABITS (environment, words): ignore-term: SIGTERM does nothing; daemon: leaves a process behind that
// has its own session; shm: makes a file of shared memory that is left behind; loading: never ready; refuse:
// "failed: ..." and exit 3; orphans: like daemon, and ignores SIGTERM there. SIGUSR1: exit with code 42.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <thread>

namespace {

std::map<std::string, std::string> options;
std::string habits;
std::atomic<unsigned long> generated{0};

bool has(const char* habit) {
  return (" " + habits + " ").find(" " + std::string(habit) + " ") != std::string::npos;
}

void say(const std::string& words) {
  const std::string line = "troika-stage[" + options["--replica"] + "/" + options["--rank"] + " e" +
                           options["--epoch"] + "]: " + words + "\n";
  (void)!::write(2, line.data(), line.size());
}

void send_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

void answer(int fd, const std::string& type, const std::string& body) {
  send_all(fd, "HTTP/1.1 200 OK\r\nContent-Type: " + type + "\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body);
}

std::string chunk(const std::string& data) {
  char size[32];
  ::snprintf(size, sizeof size, "%zx\r\n", data.size());
  return size + data + "\r\n";
}

// "hold": one event, then nothing until the client goes. "cut": one event, then the connection ends.
void stream(int fd, const std::string& request) {
  send_all(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  send_all(fd, chunk("data: {\"n\":1}\n\n"));
  if (request.find("cut") != std::string::npos) return;
  if (request.find("hold") != std::string::npos) {
    char byte = 0;
    while (::recv(fd, &byte, 1, 0) > 0) {
    }
    say("the client is gone");
    return;
  }
  for (int i = 2; i <= 5; ++i)
    send_all(fd, chunk("data: {\"n\":" + std::to_string(i) + "}\n\n"));
  send_all(fd, chunk("data: [DONE]\n\n") + "0\r\n\r\n");
}

void serve(int fd) {
  std::string request;
  char buffer[4096];
  std::size_t wanted = std::string::npos;
  while (request.size() < wanted) {
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) break;
    request.append(buffer, static_cast<std::size_t>(n));
    const std::size_t end = request.find("\r\n\r\n");
    if (end == std::string::npos || wanted != std::string::npos) continue;
    std::string head = request.substr(0, end);
    std::transform(head.begin(), head.end(), head.begin(), [](unsigned char c) { return ::tolower(c); });
    const std::size_t length = head.find("content-length: ");
    wanted = end + 4 + (length == std::string::npos ? 0 : ::strtoul(head.c_str() + length + 16, nullptr, 10));
  }
  const auto is = [&](const char* start) { return request.rfind(start, 0) == 0; };
  const std::string begin_end = options["--layers"];
  if (is("GET /server_info ")) {
    answer(fd, "application/json",
           "{\"version\":\"stub\",\"model\":\"" + options["--served-model-name"] + "\",\"replica\":\"" +
               options["--replica"] + "\",\"epoch\":" + options["--epoch"] + ",\"context_length\":" +
               options["--context-length"] + ",\"chunked_prefill_size\":" + options["--chunked-prefill"] +
               ",\"max_running_requests\":" + options["--max-running"] +
               ",\"pp_size\":1,\"pp_layer_partition\":[43],\"max_total_num_tokens\":5000}");
  } else if (is("GET /metrics ")) {
    answer(fd, "text/plain",
           "# TYPE troika_stage_generation_tokens_total counter\ntroika_stage_generation_tokens_total " +
               std::to_string(generated.load()) + "\n");
  } else if (is("GET /v1/models ")) {
    answer(fd, "application/json", "{\"data\":[{\"id\":\"" + options["--served-model-name"] + "\"}]}");
  } else if (is("POST /v1/") && request.find("\"stream\":true") != std::string::npos) {
    stream(fd, request);
  } else if (is("POST /v1/")) {
    generated += 8;
    answer(fd, "application/json",
           "{\"choices\":[{\"text\":\"eight tokens\"}],\"usage\":{\"completion_tokens\":8},\"echo_bytes\":" +
               std::to_string(request.size() - request.find("\r\n\r\n") - 4) + "}");
  } else {
    send_all(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }
}

int listen_on(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<std::uint16_t>(::atoi(address.c_str() + colon + 1)));
  ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &in.sin_addr);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&in), sizeof in) != 0 || ::listen(fd, 16) != 0) {
    say("failed: cannot listen on " + address);
    ::exit(1);
  }
  return fd;
}

void leave_daemon(bool stubborn) {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  if (stubborn) ::signal(SIGTERM, SIG_IGN);
  ::alarm(300);
  while (true)
    ::pause();
}

void leave_shared_memory() {
  // The mark with dots, as the agent names it: CLUSTER/NODE/REPLICA/RANK/EPOCH.
  std::string mark = ::getenv("TROIKA_STAGE");
  std::string prefix = "troika.";
  int slashes = 0;
  for (const char c : mark)
    prefix += c != '/' ? c : ++slashes <= 2 ? '.' : '-';
  const std::string path = "/dev/shm/" + prefix + ".weights";
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  (void)!::write(fd, "x", 1);
  ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2)
    options[argv[i]] = argv[i + 1];
  if (const char* words = ::getenv("STUB_HABITS")) habits = words;
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGUSR1, [](int) { ::_exit(42); });
  ::signal(
      SIGTERM, has("ignore-term") ? SIG_IGN : [](int) { ::_exit(0); });
  ::alarm(300);  // never outlives a test run by much
  if (has("daemon")) leave_daemon(false);
  if (has("orphans")) leave_daemon(true);
  if (has("shm")) leave_shared_memory();
  if (options.count("--link-key-file") != 0) {
    FILE* key = ::fopen(options["--link-key-file"].c_str(), "r");
    char text[128] = {};
    if (key == nullptr || ::fgets(text, sizeof text, key) == nullptr || ::strlen(text) < 64) {
      say("failed: no link key");
      return 1;
    }
    ::fclose(key);
  }
  if (has("refuse")) {
    say("failed: architecture DeepseekV4ForCausalLM is not supported");
    return 3;
  }
  if (options.count("--link-listen") != 0) listen_on(options["--link-listen"]);  // held until the end
  const int api = options.count("--api") != 0 ? listen_on(options["--api"]) : -1;
  say("loading 500/1000");
  if (has("loading")) {
    while (true)
      ::pause();
  }
  say("loaded layers=" + options["--layers"] + " tensors=9 bytes=1000 seconds=0.01");
  say("ready rank=" + options["--rank"] + " epoch=" + options["--epoch"] + " api=" + options["--api"] +
      " kv_tokens=5000");
  if (api < 0) {
    while (true)
      ::pause();
  }
  while (true) {
    const int fd = ::accept4(api, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    std::thread([fd] {
      serve(fd);
      ::close(fd);
    }).detach();
  }
}
