#include "cli/local/stream.hpp"

#include <utility>

#include "platform/clock.hpp"

namespace troika::local {

Stream::Stream(std::string host, std::uint16_t port, HttpRequest request) {
  outcome_.asked = platform::now();
  request.stop = [this, also = std::move(request.stop)] { return given_up_ || (also && also()); };
  thread_ = std::thread(
      [this, host = std::move(host), port, request = std::move(request)] { run(host, port, request); });
}

Stream::~Stream() {
  given_up_ = true;
  if (thread_.joinable()) thread_.join();
}

std::uint64_t Stream::pieces() const {
  const std::lock_guard lock(mutex_);
  return outcome_.answer.pieces();
}

bool Stream::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

StreamOutcome Stream::join() {
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  return outcome_;
}

void Stream::run(const std::string& host, std::uint16_t port, const HttpRequest& request) {
  auto reply = http(host, port, request, [this](std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    if (outcome_.refusal.size() + bytes.size() <= kMaxHead.count) outcome_.refusal += bytes;
    outcome_.answer.feed(bytes, platform::now());
    return true;
  });
  const std::lock_guard lock(mutex_);
  outcome_.ended = platform::now();
  if (reply.ok()) {
    if (reply->status == 200) outcome_.refusal.clear();
    outcome_.trouble = reply->trouble;
    outcome_.reply = *std::move(reply);
  } else {
    outcome_.trouble = reply.error().message();
  }
  running_ = false;
}

}  // namespace troika::local
