// `troika demo` as a child: whatever ends it, nothing remains.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/local/sweep.hpp"
#include "platform/files.hpp"
#include "tests/cluster/cluster.hpp"

namespace troika::local {
namespace {

std::string troika() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/troika";
}

class Demo : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(std::filesystem::create_directory(folder_)); }
  void TearDown() override {
    if (HasFailure()) std::cout << output("out") << output("again");
    for (const std::string& root : roots())
      (void)sweep(root).ok();
    std::filesystem::remove_all(folder_);
  }

  pid_t start(const std::string& log = "out", std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"demo"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto pid = children_.spawn({troika(), arguments, {{"TMPDIR", folder_}}, folder_ + "/" + log});
    EXPECT_TRUE(pid.ok()) << pid.error().message();
    return pid.ok() ? *pid : 0;
  }
  std::string output(const std::string& log) const {
    const auto text = platform::read_file(folder_ + "/" + log, kMaxFile);
    return text.ok() ? *text : "";
  }
  // Or the demo ended.
  bool says(pid_t pid, const std::string& text, const std::string& log = "out") {
    const auto limit = patience(std::chrono::seconds{120}) / std::chrono::milliseconds{20};
    for (auto i = 0 * limit; i < limit; ++i) {
      if (output(log).find(text) != std::string::npos) return true;
      if (children_.wait(pid, std::chrono::milliseconds{20}))
        return output(log).find(text) != std::string::npos;
    }
    return false;
  }
  std::vector<std::string> roots() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (entry.is_directory()) out.push_back(entry.path().string());
    return out;
  }
  // The ports that the cluster below `root` was given.
  static std::vector<std::uint16_t> ports(const std::string& root) {
    std::vector<std::uint16_t> out;
    std::ifstream in(Layout{root}.cluster_toml());
    for (std::string line; std::getline(in, line);)
      if (const auto at = line.find("127.0.0.1:"); at != std::string::npos)
        out.push_back(static_cast<std::uint16_t>(std::stoi(line.substr(at + 10))));
    return out;
  }

  // A demo that is killed while its cluster serves; its children outlive it. Its folder.
  std::string leave_one() {
    const pid_t killed = start();
    EXPECT_TRUE(says(killed, "4. "));
    EXPECT_EQ(roots().size(), 1u);
    const std::string root = roots().empty() ? folder_ : roots().front();
    EXPECT_EQ(::kill(killed, SIGKILL), 0);
    EXPECT_TRUE(children_.wait(killed, patience(std::chrono::seconds{60})));
    EXPECT_FALSE(processes_of(root).empty());
    return root;
  }

  void interrupt_at(const std::string& text, int signal) {
    const pid_t pid = start();
    ASSERT_TRUE(says(pid, text));
    ASSERT_EQ(roots().size(), 1u);
    const std::string root = roots().front();
    const auto held = ports(root);
    ASSERT_EQ(::kill(pid, signal), 0);
    const auto ended = children_.wait(pid, patience(std::chrono::seconds{60}));
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->code, 128 + signal) << output("out");
    EXPECT_TRUE(processes_of(root).empty());
    EXPECT_FALSE(std::filesystem::exists(root));
    for (const std::uint16_t port : held)
      EXPECT_TRUE(is_free(port)) << port;
  }

  std::string folder_ = temp_folder() + "/troika-t." + platform::random_hex(3);
  Children children_;
};

TEST_F(Demo, SigintWhileItBeginsLeavesNothing) {
  interrupt_at("1. ", SIGINT);
}
TEST_F(Demo, SigtermWhileReplicasStartLeavesNothing) {
  interrupt_at("3. ", SIGTERM);
}
TEST_F(Demo, SigintDuringAStreamLeavesNothing) {
  interrupt_at("4. ", SIGINT);
}
TEST_F(Demo, SigtermWhileItWaitsForTheRateLeavesNothing) {
  interrupt_at("the rate is", SIGTERM);
}

TEST_F(Demo, AfterSigkillTheNextDemoSweepsAndSaysSo) {
  const std::string root = leave_one();
  const pid_t next = start("again");
  ASSERT_TRUE(says(next, "swept", "again"));
  ASSERT_TRUE(says(next, "1. ", "again"));
  EXPECT_TRUE(processes_of(root).empty());
  EXPECT_FALSE(std::filesystem::exists(root));
  ASSERT_EQ(::kill(next, SIGTERM), 0);
  const auto ended = children_.wait(next, patience(std::chrono::seconds{60}));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 128 + SIGTERM);
}

// The processes are found by the folder's path in their command lines: another spelling of it must not hide
// them.
TEST_F(Demo, StopTakesAnySpellingOfTheFolder) {
  const std::string root = leave_one();
  const std::string link = folder_ + "/link";
  std::filesystem::create_directory_symlink(root, link);
  const auto stop = children_.spawn(
      {troika(),
       {"demo", "--stop",
        std::filesystem::relative(link).string() + "/../" + std::filesystem::path(link).filename().string()},
       {},
       folder_ + "/again"});
  ASSERT_TRUE(stop.ok());
  const auto ended = children_.wait(*stop, patience(std::chrono::seconds{60}));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 0) << output("again");
  EXPECT_TRUE(processes_of(root).empty());
  EXPECT_FALSE(std::filesystem::exists(root));
}

// A temporary folder behind a link: the demo's own printed path must do.
TEST_F(Demo, StopFindsWhatBeganBehindALink) {
  const std::string link = folder_ + "-link";
  std::filesystem::create_directory_symlink(folder_, link);
  const auto begun = children_.spawn({troika(), {"demo"}, {{"TMPDIR", link}}, folder_ + "/out"});
  ASSERT_TRUE(begun.ok());
  ASSERT_TRUE(says(*begun, "4. "));
  ASSERT_EQ(roots().size(), 1u);
  const std::string root = roots().front();
  ASSERT_EQ(::kill(*begun, SIGKILL), 0);
  ASSERT_TRUE(children_.wait(*begun, patience(std::chrono::seconds{60})));
  const auto stop =
      children_.spawn({troika(),
                       {"demo", "--stop", link + "/" + std::filesystem::path(root).filename().string()},
                       {},
                       folder_ + "/again"});
  ASSERT_TRUE(stop.ok());
  const auto ended = children_.wait(*stop, patience(std::chrono::seconds{60}));
  std::filesystem::remove(link);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 0) << output("again");
  EXPECT_EQ(output("again").find(": 0 processes"), std::string::npos) << output("again");
  EXPECT_TRUE(processes_of(root).empty());
  EXPECT_FALSE(std::filesystem::exists(root));
}

TEST_F(Demo, TooLongOrTakenFoldersAreUsageErrors) {
  const pid_t taken = start("out", {"--dir", folder_});
  const auto ended = children_.wait(taken, patience(std::chrono::seconds{30}));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 2) << output("out");
  const std::string longest = folder_ + "/" + std::string(80, 'x');
  const pid_t pid = start("again", {"--dir", longest});
  const auto refused = children_.wait(pid, patience(std::chrono::seconds{30}));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, 2) << output("again");
  EXPECT_FALSE(std::filesystem::exists(longest));
}

}  // namespace
}  // namespace troika::local
