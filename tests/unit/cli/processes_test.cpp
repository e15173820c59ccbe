// What a cluster leaves is found by its mark, and only that.
#include "cli/local/processes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "cli/local/children.hpp"
#include "cli/local/copy.hpp"
#include "cli/local/shape.hpp"
#include "cli/local/sweep.hpp"
#include "platform/files.hpp"

namespace troika::local {
namespace {

constexpr Duration kLimit = std::chrono::seconds{30};

class Folder {
 public:
  Folder() : path_(temp_folder() + "/troika-unit." + platform::random_hex(6)) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Launch sleeper(const std::string& mark, const std::string& log) {
  return {"/bin/sh", {"-c", "sleep 300 & wait"}, {{kMark, mark}}, log};
}

bool two_run(const std::string& directory) {
  for (int i = 0; i < 3000; ++i) {
    if (processes_of(directory).size() == 2) return true;
    ::usleep(10'000);
  }
  return false;
}

TEST(LocalProcesses, AllThatInheritedTheMarkIsKilledAndNothingElse) {
  const Folder folder;
  Children children;
  const std::string ours = folder.path() + "/a", others = folder.path() + "/ab";
  const auto one = children.spawn(sleeper(ours, folder.path() + "/log"));
  const auto two = children.spawn(sleeper(others, folder.path() + "/log"));
  ASSERT_TRUE(one.ok() && two.ok());
  ASSERT_TRUE(two_run(ours));
  ASSERT_TRUE(two_run(others));

  const auto killed = kill_all(ours, kLimit);
  ASSERT_TRUE(killed.ok());
  EXPECT_EQ(killed->size(), 2u);
  EXPECT_TRUE(processes_of(ours).empty());
  EXPECT_EQ(processes_of(others).size(), 2u);
  const auto ended = children.wait(*one, kLimit);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->signal, SIGKILL);
  ASSERT_TRUE(kill_all(others, kLimit).ok());
}

TEST(LocalProcesses, AnEndIsToldByCodeOrSignal) {
  const Folder folder;
  Children children;
  const auto pid = children.spawn({"/bin/sh", {"-c", "echo said; exit 3"}, {}, folder.path() + "/log"});
  ASSERT_TRUE(pid.ok());
  const auto ended = children.wait(*pid, kLimit);
  ASSERT_TRUE(ended);
  EXPECT_EQ(text(*ended), "exit 3");
  EXPECT_EQ(*platform::read_file(folder.path() + "/log", Bytes{100}), "said\n");
}

TEST(LocalSweep, OnlyWhatNobodyOwnsIsSwept) {
  const Folder parent;
  const auto make = [&](const std::string& name, bool kept) {
    const std::string root = parent.path() + "/troika-demo." + name;
    std::filesystem::create_directory(root);
    EXPECT_TRUE(write_record(root, {"demo", 1, kept, "", ""}).ok());
    return root;
  };
  const std::string owned = make("owned", false), kept = make("kept", true), stale = make("stale", false);
  const std::string young = parent.path() + "/troika-demo.young";
  std::filesystem::create_directory(young);
  const auto lock = platform::DirectoryLock::take(Layout{owned}.lock());
  ASSERT_TRUE(lock.ok());
  Children children;
  ASSERT_TRUE(children.spawn(sleeper(stale, parent.path() + "/log")).ok());
  ASSERT_TRUE(two_run(stale));

  const auto swept = sweep_stale(parent.path(), "troika-demo");
  ASSERT_TRUE(swept.ok());
  ASSERT_EQ(swept->size(), 1u);
  EXPECT_EQ((*swept)[0].root, stale);
  EXPECT_EQ((*swept)[0].processes, 2u);
  EXPECT_FALSE(std::filesystem::exists(stale));
  for (const std::string& root : {owned, kept, young})
    EXPECT_TRUE(std::filesystem::exists(root)) << root;
  EXPECT_EQ(kept_clusters(parent.path(), "troika-demo"), std::vector<std::string>{kept});
}

TEST(LocalCopy, ACopyIsItsOwnAndAFlippedByteComesBack) {
  const Folder folder;
  ASSERT_TRUE(platform::make_directories(folder.path() + "/from").ok());
  const std::string content(100'000, 'x');
  ASSERT_TRUE(platform::write_file_durably(folder.path() + "/from/shard", content).ok());
  const auto copied = copy_directory(folder.path() + "/from", folder.path() + "/to");
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->files, 1u);
  EXPECT_EQ(copied->bytes.count, content.size());
  const std::string copy = folder.path() + "/to/shard";
  ASSERT_TRUE(flip_byte(copy, 500).ok());
  EXPECT_EQ(*platform::read_file(folder.path() + "/from/shard", Bytes{1u << 20}), content);
  EXPECT_NE(*platform::read_file(copy, Bytes{1u << 20}), content);
  ASSERT_TRUE(flip_byte(copy, 500).ok());
  EXPECT_EQ(*platform::read_file(copy, Bytes{1u << 20}), content);
  EXPECT_FALSE(flip_byte(copy, content.size()).ok());
}

}  // namespace
}  // namespace troika::local
