// A log line that a flood of events repeats at most once a window, with a count of those left out.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "vocabulary/units.hpp"

namespace troika::platform {

class QuietLine : public std::enable_shared_from_this<QuietLine> {
 public:
  static constexpr Duration kWindow = std::chrono::seconds{10};

  explicit QuietLine(const boost::asio::any_io_executor& executor, Duration window = kWindow)
      : timer_(executor), window_(window) {}

  // The first of a window is logged at once; at its end the number of the others, and the last of them.
  void say(std::string text);
  // Logs what is still counted and stops the timer.
  void stop();

 private:
  void wait();
  void settle();

  boost::asio::steady_timer timer_;
  Duration window_;
  bool open_ = false;  // a window runs
  std::uint64_t left_out_ = 0;
  std::string last_;
};

}  // namespace troika::platform
