#include "engine/safetensors/json_strict.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <set>
#include <vector>

namespace troika::safetensors {

Result<nlohmann::json> parse_strict(std::string_view text, const std::string& subject) {
  using nlohmann::json;
  constexpr int kDeepest = 64;
  std::vector<std::set<std::string>> keys;
  std::optional<std::string> fault;
  const auto inspect = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest && !fault) fault = "nested too deeply";
    switch (event) {
      case json::parse_event_t::object_start:
        keys.emplace_back();
        break;
      case json::parse_event_t::object_end:
        if (!keys.empty()) keys.pop_back();
        break;
      case json::parse_event_t::key:
        if (!keys.empty() && !keys.back().insert(parsed.get<std::string>()).second && !fault) {
          fault = "the key \"" + parsed.get<std::string>() + "\" occurs twice";
        }
        break;
      case json::parse_event_t::array_start:
      case json::parse_event_t::array_end:
      case json::parse_event_t::value:
        break;
    }
    return true;
  };
  try {
    json document = json::parse(text, inspect);
    if (fault) return Error{"read", subject, *fault};
    return document;
  } catch (const json::parse_error& error) {
    return Error{"read", subject, "not JSON, at byte " + std::to_string(error.byte)};
  } catch (const json::exception& error) {
    return Error{"read", subject, error.what()};
  }
}

Result<std::string> read_text(const std::string& path, std::size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error("open", path, errno);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return Error{"read", path, "not a regular file"};
  }
  if (static_cast<std::uint64_t>(status.st_size) > limit) {
    ::close(fd);
    return Error{"read", path, "over " + std::to_string(limit) + " bytes"};
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const auto got = ::read(fd, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int reason = got < 0 ? errno : EIO;
      ::close(fd);
      return system_error("read", path, reason);
    }
    filled += static_cast<std::size_t>(got);
  }
  ::close(fd);
  return text;
}

}  // namespace troika::safetensors
