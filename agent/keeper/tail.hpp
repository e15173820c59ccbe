// The last lines of a stage's output, in memory: a client that comes late gets them first.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace troika::keeper {

class Tail {
 public:
  static constexpr std::size_t kLongestLine = 1024;  // the rest of a longer line is left out
  static constexpr std::size_t kKept = 64u << 10;    // bytes of lines

  // Calls `each` for every line that is complete now.
  void append(std::string_view output, const std::function<void(const std::string&)>& each);
  // A last line without its end, when no more output will come.
  void finish(const std::function<void(const std::string&)>& each);

  const std::deque<std::string>& lines() const { return lines_; }

 private:
  void complete(const std::function<void(const std::string&)>& each);

  std::string open_;
  std::deque<std::string> lines_;
  std::size_t kept_ = 0;
};

}  // namespace troika::keeper
