// Two epochs of a replica never live at once, however long a stage takes to die.
#include <signal.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "platform/procfs.hpp"
#include "platform/tree.hpp"
#include "tests/cluster/cluster.hpp"

namespace troika::local {
namespace {

using demo::replica;

// Looks at every process of the cluster again and again: which epochs of each replica live now?
class EpochWatch {
 public:
  explicit EpochWatch(std::string root) : root_(std::move(root)), thread_([this] { look(); }) {}
  ~EpochWatch() { end(); }
  EpochWatch(const EpochWatch&) = delete;
  EpochWatch& operator=(const EpochWatch&) = delete;

  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  const std::set<std::string>& seen() const { return seen_; }          // "a/1": replica and epoch
  const std::set<std::string>& overlaps() const { return overlaps_; }  // "a: 1 and 2"

 private:
  void look() {
    while (!stop_) {
      std::map<std::string, std::set<std::string>> live;
      for (const Process& one : processes_of(root_)) {
        // CLUSTER/NODE/REPLICA/RANK/EPOCH
        const auto mark = platform::read_variable(one.id.pid, platform::kStageVariable);
        if (mark.seen != platform::Variable::Seen::Present) continue;
        std::vector<std::string> parts;
        for (std::size_t from = 0; from <= mark.value.size();) {
          const std::size_t to = std::min(mark.value.find('/', from), mark.value.size());
          parts.push_back(mark.value.substr(from, to - from));
          from = to + 1;
        }
        if (parts.size() != 5) continue;
        live[parts[2]].insert(parts[4]);
        seen_.insert(parts[2] + "/" + parts[4]);
      }
      for (const auto& [name, epochs] : live)
        if (epochs.size() > 1) overlaps_.insert(name + ": " + *epochs.begin() + " and " + *epochs.rbegin());
    }
  }

  std::string root_;
  std::set<std::string> seen_;
  std::set<std::string> overlaps_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class Epochs : public ClusterTest {};

TEST_F(Epochs, NeverOverlapWhenAStageRefusesToDieForSomeSeconds) {
  make();
  start();
  serve();
  EpochWatch watch(cluster_->layout().root);
  const auto before = status();
  const pid_t stubborn = pid_of("a/1");
  // Stopped, it answers no SIGTERM; only the SIGKILL at the end of the grace ends it.
  ASSERT_EQ(::kill(stubborn, SIGSTOP), 0);
  kill(pid_of("a/0"));
  const auto after = wait("a serves under a new epoch", [&](const auto& s) {
    return demo::serves(s, "a") && replica(s, "a")->epoch > replica(before, "a")->epoch;
  });
  watch.end();
  EXPECT_EQ(watch.overlaps(), std::set<std::string>{});
  EXPECT_TRUE(watch.seen().contains("a/1"));
  EXPECT_TRUE(watch.seen().contains("a/2")) << "the watch saw the new epoch";
  EXPECT_FALSE(alive(stubborn));
  end();
}

TEST_F(Epochs, NeverOverlapWhenTheLeaderDiesWhileItStopsAnEpoch) {
  make();
  start();
  serve();
  EpochWatch watch(cluster_->layout().root);
  const auto before = status();
  ASSERT_EQ(::kill(pid_of("a/1"), SIGSTOP), 0);
  kill(pid_of("a/0"));
  wait("a is being stopped", [](const auto& s) { return replica(s, "a")->phase == "stopping"; });
  kill(cluster_->leader());
  ASSERT_TRUE(cluster_->start_leader().ok());
  wait("a serves under a new epoch", [&](const auto& s) {
    return demo::serves(s, "a") && replica(s, "a")->epoch > replica(before, "a")->epoch;
  });
  watch.end();
  EXPECT_EQ(watch.overlaps(), std::set<std::string>{});
  end();
}

}  // namespace
}  // namespace troika::local
