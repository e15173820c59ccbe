// When a digest stands for a file's bytes without reading them (modes 1, 8 and 9): every rule, and seeded
// histories of a file in which "unchanged" must never be said of bytes that did change.
#include "policies/remembered.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace troika::policies {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kExt4 = 0xEF53;
constexpr std::uint64_t kTmpfs = 0x01021994;
constexpr std::uint64_t kNfs = 0x6969;
constexpr std::uint64_t kFuse = 0x65735546;
const Duration kNow = hours{500000};

WholeRead good_read() {
  WholeRead read;
  read.stamp = {8, 12, 4096, kNow - hours{1}, kNow - hours{1}};
  read.file_system = {77, kExt4};
  read.writers = Writers::None;
  read.on_disk = true;
  read.begin = {kNow, hours{5}, "boot-1"};
  read.end = {kNow + seconds{30}, hours{5} + seconds{30}, "boot-1"};
  return read;
}

TEST(Remembered, EveryCombinationOfWhatMayBeWrong) {
  const std::array types{kExt4, kTmpfs, kNfs, kFuse, std::uint64_t{0}};
  const std::array writers{Writers::None, Writers::Some, Writers::CannotTell};
  const std::array<Duration, 6> ages{hours{-1}, seconds{0}, milliseconds{2999},
                                     kSettled,  seconds{4}, hours{9}};
  const std::array<Duration, 5> steps{seconds{-2}, milliseconds{-900}, seconds{0}, milliseconds{900},
                                      seconds{2}};
  const std::array<const char*, 3> boots{"boot-1", "boot-2", ""};
  std::size_t remembered = 0;
  std::size_t all = 0;
  for (const std::uint64_t type : types)
    for (const Writers writer : writers)
      for (const bool on_disk : {false, true})
        for (const Duration modified : ages)
          for (const Duration changed : ages)
            for (const Duration step : steps)
              for (const char* const boot : boots) {
                WholeRead read = good_read();
                read.file_system.type = type;
                read.writers = writer;
                read.on_disk = on_disk;
                read.stamp.modified = read.begin.wall - modified;
                read.stamp.changed = read.begin.wall - changed;
                read.end.wall += step;
                read.end.boot_id = boot;
                const bool clock = boot == std::string{"boot-1"} && step >= seconds{-1} && step <= seconds{1};
                const bool settled = modified >= kSettled && changed >= kSettled;
                const Remember verdict = may_remember(read);
                ASSERT_EQ(verdict == Remember::Yes,
                          type == kExt4 && writer == Writers::None && on_disk && clock && settled)
                    << text(verdict);
                ++all;
                remembered += verdict == Remember::Yes ? 1 : 0;
              }
  EXPECT_EQ(all, 16200u);
  EXPECT_EQ(remembered, 27u);  // 3 ages for each of the times, 3 steps of the clock
}

TEST(Remembered, TheReasonIsTheOneThatStandsInTheWay) {
  const auto because = [](void (*wrong)(WholeRead&)) {
    WholeRead read = good_read();
    wrong(read);
    return may_remember(read);
  };
  EXPECT_EQ(may_remember(good_read()), Remember::Yes);
  EXPECT_EQ(because([](WholeRead& r) { r.file_system.type = kNfs; }), Remember::OtherFileSystem);
  EXPECT_EQ(because([](WholeRead& r) { r.end.wall += hours{1}; }), Remember::ClockJumped);
  EXPECT_EQ(because([](WholeRead& r) { r.end.wall -= hours{1}; }), Remember::ClockJumped);
  EXPECT_EQ(because([](WholeRead& r) { r.begin.boot_id = r.end.boot_id = ""; }), Remember::ClockJumped);
  EXPECT_EQ(because([](WholeRead& r) { r.stamp.changed = r.begin.wall - seconds{1}; }),
            Remember::ChangedJustNow);
  EXPECT_EQ(because([](WholeRead& r) { r.stamp.modified = r.begin.wall + hours{9}; }),
            Remember::ChangedJustNow);
  EXPECT_EQ(because([](WholeRead& r) { r.writers = Writers::Some; }), Remember::OpenForWriting);
  EXPECT_EQ(because([](WholeRead& r) { r.writers = Writers::CannotTell; }), Remember::WritersUnknown);
  EXPECT_EQ(because([](WholeRead& r) { r.on_disk = false; }), Remember::NotOnDisk);
}

struct Counts {
  Remembered record;
  FileStamp stamp;
  FileSystem file_system;
  ClockReading now;
  Duration most_age{};
};

Counts counting() {
  const WholeRead read = good_read();
  return {{read.stamp, read.file_system, read.end, "digest", ""},
          read.stamp,
          read.file_system,
          {read.end.wall + hours{24}, read.end.boot + hours{24}, "boot-1"}};
}

bool counts(void (*change)(Counts&)) {
  Counts one = counting();
  change(one);
  return still_counts(one.record, one.stamp, one.file_system, one.now, one.most_age);
}

TEST(Remembered, CountsWhileNothingChanged) {
  EXPECT_TRUE(counts([](Counts&) {}));
  EXPECT_TRUE(counts([](Counts& c) { c.now = {c.now.wall, seconds{1}, "boot-2"}; })) << "after a reboot";
  EXPECT_TRUE(counts([](Counts& c) { c.now.wall += milliseconds{900}; })) << "a clock that is disciplined";
  EXPECT_TRUE(counts([](Counts& c) { c.most_age = hours{24}; }));
}

TEST(Remembered, AnyChangeEndsIt) {
  EXPECT_FALSE(counts([](Counts& c) { c.stamp.device = 9; }));
  EXPECT_FALSE(counts([](Counts& c) { c.stamp.inode = 13; })) << "a copied tree";
  EXPECT_FALSE(counts([](Counts& c) { c.stamp.bytes += 1; }));
  EXPECT_FALSE(counts([](Counts& c) { c.stamp.modified += Duration{1}; }));
  EXPECT_FALSE(counts([](Counts& c) { c.stamp.changed += Duration{1}; })) << "its mtime was restored";
  EXPECT_FALSE(counts([](Counts& c) { c.file_system.id = 78; })) << "another disk in its place";
  EXPECT_FALSE(counts([](Counts& c) { c.file_system.type = kTmpfs; }));
  EXPECT_FALSE(counts([](Counts& c) { c.now.wall = c.record.proven.wall - Duration{1}; }));
  EXPECT_FALSE(counts([](Counts& c) { c.now.wall += hours{1}; })) << "the clock jumped forward";
  EXPECT_FALSE(counts([](Counts& c) { c.now.wall -= hours{1}; })) << "the clock jumped back";
  EXPECT_FALSE(counts([](Counts& c) { c.now.boot_id = ""; }));
  EXPECT_FALSE(counts([](Counts& c) { c.most_age = hours{24} - Duration{1}; }));
  EXPECT_FALSE(counts([](Counts& c) { c.record.stamp.changed = c.stamp.changed = c.record.proven.wall; }))
      << "a record that should never have been written";
}

// A file, its file system and the machine's clock, as a kernel keeps them: times are those of the last tick.
class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) { stamp_.changed = stamp_.modified = tick(); }

  void step() {
    switch (pick(12)) {
      case 0:
        return write();
      case 1:
        return restore_mtime();
      case 2:
        return set_clock();
      case 3:
        return reboot();
      case 4:
        mapped_ = !mapped_;
        if (mapped_) touch();  // whoever maps a file opened it for writing before; its first store is told
        return;
      case 5:
        if (mapped_) ++content_;  // a store into a mapping leaves the times alone
        return;
      case 6:
        return replace();
      case 7:
        return lose_power();
      case 8:
      case 9:
        return pass(milliseconds{pick(2) == 0 ? pick(10) : pick(20000)});
      default:
        return prove();
    }
  }

  // What "unchanged" would be said of, and whether it is so.
  bool remembered() const { return record_ && still_counts(*record_, stamp_, file_system_, clock(), {}); }
  bool is_true() const { return record_->sha256 == std::to_string(content_); }
  std::size_t records() const { return records_; }

 private:
  static constexpr Duration kTick = milliseconds{4};

  int pick(int below) { return std::uniform_int_distribution{0, below - 1}(random_); }
  Duration wall() const { return boot_ + offset_; }
  Duration tick() const { return wall() - wall() % kTick; }
  ClockReading clock() const { return {wall(), boot_, "boot-" + std::to_string(boots_)}; }
  void pass(Duration time) { boot_ += time; }
  void touch() { stamp_.modified = stamp_.changed = tick(); }

  void write() {
    ++content_;
    ++unsynced_;
    touch();
  }
  void restore_mtime() {
    ++content_;
    stamp_.changed = tick();
  }
  void set_clock() { offset_ += milliseconds{(pick(2) == 0 ? -1 : 1) * (1500 + pick(100000000))}; }
  void reboot() {
    ++boots_;
    boot_ = seconds{1};
    mapped_ = false;
    offset_ += seconds{20 + pick(100)};
    if (pick(4) == 0) set_clock();
  }
  // The same name on another disk, or another file; numbers are used again.
  void replace() {
    ++content_;
    if (pick(2) == 0)
      ++file_system_.id;  // and everything else the same: an image of the disk, then changed
    else
      stamp_.inode ^= 1, touch();
  }
  // The bytes since the last sync are gone, the times are not (mode 9).
  void lose_power() {
    if (unsynced_ > 0) ++content_;
    unsynced_ = 0;
    reboot();
  }

  void prove() {
    WholeRead read;
    read.stamp = stamp_;
    read.file_system = file_system_;
    read.begin = clock();
    read.writers = mapped_ ? Writers::Some : Writers::None;
    const std::uint64_t content = content_;
    pass(milliseconds{pick(5000)});
    if (pick(20) == 0) set_clock();
    if (pick(20) == 0) {
      write();
      if (!(stamp_ == read.stamp)) return;  // seen to change while it was read
    }
    read.on_disk = pick(5) != 0;
    if (read.on_disk) unsynced_ = 0;
    read.end = clock();
    if (may_remember(read) != Remember::Yes) return;
    record_ = Remembered{read.stamp, read.file_system, read.end, std::to_string(content), ""};
    ++records_;
  }

  std::mt19937_64 random_;
  FileStamp stamp_{8, 12, 4096, {}, {}};
  FileSystem file_system_{1, kExt4};
  Duration boot_ = hours{1};
  Duration offset_ = hours{400000};
  int boots_ = 1;
  bool mapped_ = false;
  int unsynced_ = 0;
  std::uint64_t content_ = 0;
  std::optional<Remembered> record_;
  std::size_t records_ = 0;
};

TEST(Remembered, IsNeverWrongInAnyHistory) {
  std::size_t said = 0;
  std::size_t records = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    History history(seed);
    for (int i = 0; i < 300; ++i) {
      history.step();
      if (!history.remembered()) continue;
      ++said;
      ASSERT_TRUE(history.is_true()) << "seed " << seed << ", step " << i;
    }
    records += history.records();
  }
  EXPECT_GT(records, 10000u);
  EXPECT_GT(said, 10000u) << "and it is said often";
}

}  // namespace
}  // namespace troika::policies
