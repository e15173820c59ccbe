#include "agent/stage/fence.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "platform/files.hpp"

namespace troika::agent {
namespace {

using Json = nlohmann::json;

constexpr Bytes kLargest{1u << 20};

Json json_of(const std::map<std::string, Epoch>& epochs) {
  Json out = Json::object();
  for (const auto& [replica, epoch] : epochs)
    out[replica] = epoch.count;
  return out;
}

bool read_epochs(const Json& json, const char* key, std::map<std::string, Epoch>& epochs) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object()) return false;
  for (const auto& [replica, epoch] : found->items()) {
    if (!epoch.is_number_unsigned()) return false;
    epochs[replica] = Epoch{epoch.get<std::uint64_t>()};
  }
  return true;
}

bool read_state(const std::string& text, policies::FenceState& state) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != 1) return false;
  const auto term = json.find("highest_term");
  if (term == json.end() || !term->is_number_unsigned()) return false;
  state.highest_term = Term{term->get<std::uint64_t>()};
  return read_epochs(json, "highest_epochs", state.highest_epochs) &&
         read_epochs(json, "ended_epochs", state.ended_epochs);
}

}  // namespace

Fence Fence::load(const std::string& path) {
  Fence fence{path};
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 && errno == ENOENT) return fence;
  const auto text = platform::read_file(path, kLargest);
  if (!text.ok()) {
    fence.broken_ = text.error().message();
  } else if (!read_state(*text, fence.state_)) {
    fence.state_ = {};
    fence.broken_ = "cannot read the fence " + path + ": not in the form that was written";
  }
  return fence;
}

Status Fence::take(const policies::FenceAnswer& answer) {
  if (answer.write_first) {
    const Json json{{"format", 1},
                    {"highest_term", answer.next.highest_term.count},
                    {"highest_epochs", json_of(answer.next.highest_epochs)},
                    {"ended_epochs", json_of(answer.next.ended_epochs)}};
    TROIKA_CHECK(platform::write_file_durably(path_, json.dump(1) + "\n", 0600));
  }
  state_ = answer.next;
  return Done{};
}

}  // namespace troika::agent
