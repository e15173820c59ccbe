#include "agent/model/crew.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "agent/model/digest.hpp"
#include "agent/model/read_ahead.hpp"
#include "agent/model/sha256/sha256.hpp"

namespace troika::model {
namespace {

constexpr auto kReportEvery = std::chrono::milliseconds{100};

// Of the calling thread; threads that it starts inherit both. A machine that refuses reads at the usual
// priority.
void lower_priority() {
  constexpr int kNice = 10;
  constexpr int kIoOfThread = 1;                  // IOPRIO_WHO_PROCESS
  constexpr int kBestEffortLast = (2 << 13) | 7;  // IOPRIO_CLASS_BE, its lowest level
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, thread, kNice);
  (void)::syscall(SYS_ioprio_set, kIoOfThread, thread, kBestEffortLast);
}

class Crew {
 public:
  Crew(const std::vector<CrewTask>& tasks, const CrewOptions& options, const std::atomic<bool>& cancel)
      : tasks_(tasks), options_(options), cancel_(cancel), readings_(tasks.size()), order_(tasks.size()) {
    // The largest first, so that all end at about the same time.
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return tasks[a].bytes > tasks[b].bytes; });
  }

  std::vector<Reading> run(const std::function<void(const CrewProgress&)>& progress) {
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    const auto wanted = options_.threads != 0 ? options_.threads : processors;
    // A thread with the processor's instructions wants two files; OpenSSL gains nothing by a second one.
    const std::size_t files_each = best_sha256() == Sha256Method::OpenSsl ? 1 : 2;
    const auto count =
        std::min<std::size_t>({wanted, kMostThreads, (tasks_.size() + files_each - 1) / files_each});
    std::vector<std::thread> threads;
    at_work_ = count;
    try {
      while (threads.size() < count)
        threads.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // as many as this machine allows us
      const std::lock_guard guard(mutex_);
      at_work_ -= count - threads.size();
    }
    {
      std::unique_lock lock(mutex_);
      while (!ended_.wait_for(lock, kReportEvery, [this] { return at_work_ == 0; })) {
        const CrewProgress now{bytes_.load(), files_done_, file_};
        lock.unlock();
        progress(now);
        lock.lock();
      }
    }
    for (std::thread& one : threads)
      one.join();
    progress({bytes_.load(), files_done_, file_});
    return std::move(readings_);
  }

 private:
  // A file that is being read: the bytes that came and are not hashed yet.
  struct Lane {
    ReadAhead ahead;
    std::optional<std::size_t> task;
    std::optional<Witness> witness;
    std::optional<Sha256> sha256;
    std::optional<Hasher> git;
    std::optional<Sha256> block;  // where blocks are asked for
    std::uint64_t in_block = 0;
    std::vector<std::string> blocks;
    std::string_view open;
    std::uint64_t bytes = 0;
  };

  static Reading failed(Finding why) {
    Reading reading;
    reading.finding = std::move(why);
    return reading;
  }
  bool cancelled() const { return cancel_.load(std::memory_order_relaxed); }

  void work() {
    if (options_.low_priority) lower_priority();
    try {
      read_two_at_a_time();
    } catch (const std::exception&) {
      // No memory or no thread: what this one had in hand stays unread, which the proof says; others go on.
    }
    const std::lock_guard guard(mutex_);
    --at_work_;
    ended_.notify_all();
  }

  void read_two_at_a_time() {
    Lane lanes[2];
    while (true) {
      const bool first = feed(lanes[0]), second = feed(lanes[1]);
      if (!first && !second) return;
      if (!lanes[0].open.empty() && !lanes[1].open.empty() && !lanes[0].block && !lanes[1].block) {
        hash_both(lanes[0], lanes[1]);
      } else {
        for (Lane& lane : lanes)
          if (!lane.open.empty()) hash_one(lane);
      }
    }
  }

  // Has bytes to hash, of its file or of the next one; false: nothing is left for it.
  bool feed(Lane& lane) {
    while (lane.open.empty()) {
      if (cancelled()) return false;
      if (!lane.task && !take(lane)) return false;
      if (!lane.task) continue;
      const auto piece = lane.ahead.next();
      if (!piece.ok()) {
        finish(lane, failed(unreadable(tasks_[*lane.task].name, piece.error())));
      } else if (piece->empty()) {
        end_of_file(lane);
      } else {
        lane.open = *piece;
        lane.bytes += piece->size();
      }
    }
    return true;
  }

  // The next file. One that cannot be opened is done at once.
  bool take(Lane& lane) {
    const std::size_t next = next_.fetch_add(1);
    if (next >= order_.size()) return false;
    lane.task = order_[next];
    const CrewTask& task = tasks_[*lane.task];
    {
      const std::lock_guard guard(mutex_);
      file_ = task.name;
    }
    auto file = FileReader::open(task.path);
    if (!file.ok()) {
      finish(lane, failed(unreadable(task.name, file.error())));
      return true;
    }
    lane.witness.reset();
    if (options_.memory.record != nullptr) lane.witness.emplace(*file, options_.memory);
    lane.bytes = 0;
    lane.sha256.emplace();
    lane.git.reset();
    if (task.expected.sha256.empty() && !task.expected.git_sha1.empty())
      lane.git = Hasher::git_blob(file->stamp().bytes);
    lane.block.reset();
    if (task.block_bytes != 0) lane.block.emplace();
    lane.in_block = 0;
    lane.blocks.clear();
    lane.ahead.open(std::move(file).value());
    return true;
  }

  void hash_one(Lane& lane) {
    if (!lane.block) {
      lane.sha256->update(lane.open.data(), lane.open.size());
      return advance(lane, lane.open.size());
    }
    // The file's digest and the block's are two streams of the same bytes.
    const std::uint64_t block_bytes = tasks_[*lane.task].block_bytes;
    const auto size = std::min<std::uint64_t>(lane.open.size(), block_bytes - lane.in_block);
    Sha256::update_both(*lane.sha256, lane.open.data(), size, *lane.block, lane.open.data(), size);
    lane.in_block += size;
    if (lane.in_block == block_bytes) end_block(lane);
    advance(lane, size);
  }

  static void end_block(Lane& lane) {
    lane.blocks.push_back(lane.block->hex());
    lane.block.emplace();
    lane.in_block = 0;
  }

  void hash_both(Lane& a, Lane& b) {
    // What one has more waits for the other's next bytes.
    const std::size_t size = std::min(a.open.size(), b.open.size());
    Sha256::update_both(*a.sha256, a.open.data(), size, *b.sha256, b.open.data(), size);
    advance(a, size);
    advance(b, size);
  }

  void advance(Lane& lane, std::size_t size) {
    if (lane.git) lane.git->update(lane.open.data(), size);
    lane.open.remove_prefix(size);
    const std::uint64_t sum = bytes_.fetch_add(size, std::memory_order_relaxed) + size;
    if (options_.after_piece) options_.after_piece(sum);
  }

  void end_of_file(Lane& lane) {
    const CrewTask& task = tasks_[*lane.task];
    FileReader file = lane.ahead.take();
    if (lane.in_block > 0) end_block(lane);
    const std::string git_sha1 = lane.git ? lane.git->hex() : std::string{};
    Reading reading =
        judge_bytes(file, task.name, task.expected, lane.bytes, lane.sha256->hex(), git_sha1, cancel_);
    if (lane.witness && !reading.finding && !reading.sha256.empty())
      reading.remembered = lane.witness->testify(file, reading.sha256, git_sha1, cancel_);
    reading.blocks = std::move(lane.blocks);
    finish(lane, std::move(reading));
  }

  void finish(Lane& lane, Reading reading) {
    readings_[*lane.task] = std::move(reading);  // this thread's alone
    lane.task.reset();
    const std::lock_guard guard(mutex_);
    ++files_done_;
  }

  const std::vector<CrewTask>& tasks_;
  const CrewOptions options_;
  const std::atomic<bool>& cancel_;
  std::vector<Reading> readings_;
  std::vector<std::size_t> order_;
  std::atomic<std::size_t> next_{0};  // in order_
  std::atomic<std::uint64_t> bytes_{0};

  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t at_work_ = 0;
  std::uint32_t files_done_ = 0;
  std::string file_;
};

}  // namespace

std::vector<Reading> read_files(const std::vector<CrewTask>& tasks, const CrewOptions& options,
                                const std::function<void(const CrewProgress&)>& progress,
                                const std::atomic<bool>& cancel) {
  return Crew{tasks, options, cancel}.run(progress);
}

}  // namespace troika::model
