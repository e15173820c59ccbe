// A streamed completion that runs while something else is done to the cluster.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/local/answer.hpp"
#include "cli/local/http.hpp"

namespace troika::local {

struct StreamOutcome {
  Instant asked;
  Instant ended;
  std::optional<HttpReply> reply;  // absent: no answer at all, see `trouble`
  std::string trouble;
  std::string refusal;  // body of an answer that is no stream
  AnswerStream answer;

  bool whole() const { return reply && reply->status == 200 && reply->complete && answer.done(); }
};

class Stream {
 public:
  // Asks at once. request.stop, where it is given, ends it too, with the trouble "interrupted".
  Stream(std::string host, std::uint16_t port, HttpRequest request);
  ~Stream();  // gives up what is not joined: the connection is closed at once
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  std::uint64_t pieces() const;  // events with text so far
  bool running() const;
  StreamOutcome join();  // waits for the end

 private:
  void run(const std::string& host, std::uint16_t port, const HttpRequest& request);

  std::atomic<bool> given_up_ = false;
  mutable std::mutex mutex_;
  StreamOutcome outcome_;
  bool running_ = true;
  std::thread thread_;
};

}  // namespace troika::local
