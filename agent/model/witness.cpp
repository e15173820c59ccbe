#include "agent/model/witness.hpp"

#include "platform/clock.hpp"

namespace troika::model {

using policies::ClockReading;
using policies::Remember;
using policies::Remembered;

ClockReading read_clocks() {
  return {platform::wall_now().time_since_epoch(), platform::now().time_since_epoch(), platform::boot_id()};
}

Witness::Witness(const FileReader& file, const Memory& memory) : memory_(&memory) {
  read_.stamp = file.stamp();
  read_.file_system = file.file_system();
  read_.begin = memory.clock();
  read_.writers = file.writers();
}

Remember Witness::testify(const FileReader& file, const std::string& sha256, const std::string& git_sha1,
                          const std::atomic<bool>& cancel) {
  // Syncing costs: last, and only where everything else is as it must be.
  read_.on_disk = true;
  read_.end = memory_->clock();
  if (const Remember before = policies::may_remember(read_); before != Remember::Yes) return before;
  read_.on_disk = file.sync(cancel);
  read_.end = memory_->clock();
  const Remember verdict = policies::may_remember(read_);
  if (verdict == Remember::Yes)
    memory_->record->put({read_.stamp, read_.file_system, read_.end, sha256, git_sha1});
  return verdict;
}

std::optional<Remembered> recall(const Memory& memory, const std::string& path) {
  if (memory.record == nullptr || memory.deep) return std::nullopt;
  const auto stamp = stamp_of(path);
  if (!stamp.ok()) return std::nullopt;
  auto known = memory.record->find(*stamp);
  if (!known) return std::nullopt;
  const auto file_system = file_system_of(path);
  if (!file_system.ok()) return std::nullopt;
  if (!policies::still_counts(*known, *stamp, *file_system, memory.clock(), memory.most_age))
    return std::nullopt;
  return known;
}

}  // namespace troika::model
