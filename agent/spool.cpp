#include "agent/spool.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"
#include "protocol/codec.hpp"
#include "vocabulary/time.hpp"

namespace troika::agent {
namespace {

constexpr std::string_view kEnding = ".json";
constexpr std::size_t kDigits = 20;

}  // namespace

std::string Spool::path_of(std::uint64_t number) const {
  char name[32];
  std::snprintf(name, sizeof name, "%020llu", static_cast<unsigned long long>(number));
  return directory_ + "/" + name + std::string(kEnding);
}

Result<Spool> Spool::open(const std::string& directory, const std::string& node, const std::string& boot_id) {
  TROIKA_CHECK(platform::make_directories(directory, 0700));
  Spool spool{directory, node + "-" + boot_id + "-"};
  TROIKA_TRY(names, platform::list_directory(directory));
  for (const std::string& name : names)
    spool.load_one(name);
  return spool;
}

void Spool::load_one(const std::string& name) {
  std::uint64_t number = 0;
  if (name.size() != kDigits + kEnding.size() || name.substr(kDigits) != kEnding ||
      std::from_chars(name.data(), name.data() + kDigits, number).ptr != name.data() + kDigits)
    return;
  next_number_ = std::max(next_number_, number + 1);
  const std::string path = directory_ + "/" + name;
  const auto text = platform::read_file(path, protocol::kMaxMessage);
  if (text.ok()) {
    const auto json = protocol::Json::parse(*text, nullptr, false);
    const auto event = protocol::from_json<protocol::StageEvent>(json);
    if (event.ok()) {
      entries_.push_back({number, *event});
      return;
    }
  }
  platform::log("left aside: " + path + " is no event that can be read");
  ::rename(path.c_str(), (path + ".bad").c_str());
}

const protocol::StageEvent& Spool::add(const protocol::StageReport& report) {
  // Time since boot grows across restarts of the agent, and the boot's id is part of the name: no name comes
  // twice.
  const auto since_boot = static_cast<std::uint64_t>(platform::now().time_since_epoch().count());
  last_counter_ = std::max(last_counter_ + 1, since_boot);
  Entry entry{next_number_++,
              {id_prefix_ + std::to_string(last_counter_), rfc3339(platform::wall_now()), report}};
  const std::string text =
      protocol::to_json(entry.event).dump(-1, ' ', false, protocol::Json::error_handler_t::replace);
  if (const Status written = platform::write_file_durably(path_of(entry.number), text + "\n", 0600);
      !written.ok())
    platform::log("an event is kept in memory only: " + written.error().message());
  if (entries_.size() == kMost) {
    platform::log("the spool is full: the oldest event is given up");
    ::unlink(path_of(entries_.front().number).c_str());
    entries_.pop_front();
  }
  entries_.push_back(std::move(entry));
  return entries_.back().event;
}

std::vector<protocol::StageReport> Spool::acknowledge(const std::string& event) {
  std::vector<protocol::StageReport> done;
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.event.event == event; });
  if (found == entries_.end()) return done;
  done.push_back(found->event.report);
  ::unlink(path_of(found->number).c_str());
  entries_.erase(found);
  return done;
}

std::vector<protocol::StageEvent> Spool::waiting() const {
  std::vector<protocol::StageEvent> out;
  for (const Entry& entry : entries_)
    out.push_back(entry.event);
  return out;
}

bool Spool::holds_release(const StageId& stage, Epoch epoch) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) {
    const protocol::StageReport& r = e.event.report;
    return r.replica == stage.replica && r.rank == stage.rank && r.epoch == epoch &&
           r.state == protocol::StageState::Released;
  });
}

}  // namespace troika::agent
