// Real troika-stage processes and a plain HTTP client, for tests.
#pragma once

#include <sys/types.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace troika {

// The tiny model, made once for the whole test program.
const std::string& tiny_model_directory();
const std::string& link_key_path();

// TCP ports of 127.0.0.1 that were free a moment ago.
std::vector<int> free_ports(std::size_t count);

class StageProcess {
 public:
  explicit StageProcess(const std::vector<std::string>& arguments);
  ~StageProcess();  // SIGKILL, if it still runs
  StageProcess(const StageProcess&) = delete;
  StageProcess& operator=(const StageProcess&) = delete;

  // Reads the log until a line holds the text; the whole log so far if it ends first or half a minute has
  // passed.
  bool wait_for_line(const std::string& text);
  // Exit code, or 128 + signal. -1: it did not end within half a minute.
  int wait();
  void signal(int number) const;
  const std::string& log() const { return log_; }
  // From the ready line.
  int api_port() const;

 private:
  bool read_more(int timeout_ms);

  pid_t pid_ = -1;
  int output_ = -1;
  std::string log_;
  std::optional<int> status_;
};

// Three ranks of the tiny model, or one.
struct Replica {
  explicit Replica(int ranks, const std::vector<std::string>& more = {});
  std::vector<std::unique_ptr<StageProcess>> stages;
  bool ready();
  int port() const { return stages.front()->api_port(); }
};

// A connection that sends text as it is.
class RawConnection {
 public:
  explicit RawConnection(int port);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  void send(const std::string& bytes) const;
  // Until the text occurs or the other end closes.
  bool read_until(const std::string& text);
  std::string read_all();  // until the other end closes
  const std::string& received() const { return received_; }

 private:
  bool read_more();
  int fd_ = -1;
  std::string received_;
};

struct HttpAnswer {
  int status = 0;
  std::string head;
  std::string body;  // chunks joined
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

HttpAnswer get(int port, const std::string& path);
HttpAnswer post(int port, const std::string& path, const std::string& body);
std::string post_text(const std::string& path, const std::string& body);
// A figure of /metrics; -1 where there is none.
long metric(int port, const std::string& name);

}  // namespace troika
