#include "agent/keeper/tail.hpp"

#include <algorithm>

namespace troika::keeper {

void Tail::append(std::string_view output, const std::function<void(const std::string&)>& each) {
  while (!output.empty()) {
    const std::size_t end = output.find('\n');
    const std::string_view part = output.substr(0, end);
    open_.append(part.substr(0, kLongestLine - std::min(kLongestLine, open_.size())));
    if (end == std::string_view::npos) return;
    complete(each);
    output.remove_prefix(end + 1);
  }
}

void Tail::finish(const std::function<void(const std::string&)>& each) {
  if (!open_.empty()) complete(each);
}

void Tail::complete(const std::function<void(const std::string&)>& each) {
  // Lines travel as lines of the socket's protocol: other control characters must not break it.
  std::replace_if(
      open_.begin(), open_.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  kept_ += open_.size() + 1;
  lines_.push_back(std::move(open_));
  open_.clear();
  while (kept_ > kKept) {
    kept_ -= lines_.front().size() + 1;
    lines_.pop_front();
  }
  each(lines_.back());
}

}  // namespace troika::keeper
