#include "platform/files.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/unit/platform/folder.hpp"

namespace troika::platform {
namespace {

namespace fs = std::filesystem;

std::size_t entries_of(const std::string& path) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

TEST(Files, ReadRefusesWhatIsNoSmallRegularFile) {
  const Folder folder;
  const auto refusal = [](const std::string& path, Bytes limit) {
    const auto content = read_file(path, limit);
    return content.ok() ? "read" : content.error().message();
  };
  ASSERT_TRUE(write_file_durably(folder / "a", "12345").ok());
  EXPECT_EQ(refusal(folder / "a", Bytes{5}), "read");
  EXPECT_EQ(refusal(folder / "a", Bytes{4}),
            "cannot read " + (folder / "a") + ": longer than the 4 bytes allowed");
  EXPECT_EQ(refusal(folder.path(), Bytes{4}), "cannot read " + folder.path() + ": not a regular file");
  EXPECT_EQ(refusal(folder / "none", Bytes{4}),
            "cannot open " + (folder / "none") + ": No such file or directory");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(refusal(folder / "fifo", Bytes{4}), "cannot read " + (folder / "fifo") + ": not a regular file");
  EXPECT_EQ(refusal("/dev/zero", Bytes{4}), "cannot read /dev/zero: not a regular file");
  // /proc files tell no size; the limit holds all the same.
  EXPECT_EQ(refusal("/proc/self/status", Bytes{16}),
            "cannot read /proc/self/status: longer than the 16 bytes allowed");
  ASSERT_EQ(::symlink((folder / "a").c_str(), (folder / "link").c_str()), 0);
  EXPECT_EQ(content_of(folder / "link"), "12345");
}

TEST(Files, ListsEveryNameOrSaysWhyNot) {
  const Folder folder;
  for (const char* name : {"b", ".hidden", "a"})
    ASSERT_TRUE(write_file_durably(folder / name, "").ok());
  const auto names = list_directory(folder.path());
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(*names, (std::vector<std::string>{".hidden", "a", "b"}));
  ASSERT_EQ(::symlink("loop", (folder / "loop").c_str()), 0);
  for (const auto& [name, reason] : {std::pair{"none", "No such file or directory"},
                                     {"a", "Not a directory"},
                                     {"loop", "Too many levels of symbolic links"}}) {
    const std::string path = folder / name;
    const auto refused = list_directory(path);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().message(), "cannot list " + path + ": " + reason);
    const auto absent = list_directory(path, Absent::Empty);
    EXPECT_EQ(absent.ok(), std::string(name) != "loop") << name;
    if (absent.ok()) {
      EXPECT_TRUE(absent->empty());
    }
  }
}

TEST(Files, WriteReplacesAndLeavesNothingBeside) {
  const Folder folder;
  const mode_t before = ::umask(0077);
  ASSERT_TRUE(write_file_durably(folder / "a", "old").ok());
  ASSERT_TRUE(write_file_durably(folder / "a", std::string("new\0!", 5), 0640).ok());
  ::umask(before);
  EXPECT_EQ(content_of(folder / "a"), std::string("new\0!", 5));
  struct stat facts {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640u);  // whatever the umask
  EXPECT_EQ(entries_of(folder.path()), 1u);
}

TEST(Files, CreateNeverReplaces) {
  const Folder folder;
  ASSERT_TRUE(create_file_durably(folder / "a", "first", 0600).ok());
  const Status again = create_file_durably(folder / "a", "second", 0600);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message(), "cannot create " + (folder / "a") + ": File exists");
  EXPECT_EQ(content_of(folder / "a"), "first");
  EXPECT_EQ(entries_of(folder.path()), 1u);
}

TEST(Files, WriteErrorsNameThePath) {
  const Folder folder;
  const Status written = write_file_durably(folder / "none/a", "x");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message(),
            "cannot create " + (folder / "none/a") + ": No such file or directory");
  ASSERT_TRUE(make_directories(folder / "dir").ok());
  EXPECT_FALSE(write_file_durably(folder / "dir", "x").ok());
  EXPECT_EQ(entries_of(folder.path()), 1u);  // no temporary file is left
}

// A full disk: the old content stays, and the message says why.
TEST(Files, AFullDiskLeavesTheOldContent) {
  const Folder folder;
  const std::string disk = folder / "disk";
  ASSERT_TRUE(make_directories(disk).ok());
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "needs a tmpfs of its own";
  EXPECT_TRUE(write_file_durably(disk + "/a", "old").ok());
  const Status written = write_file_durably(disk + "/a", std::string(1u << 20, 'x'));
  EXPECT_EQ(written.ok() ? "written" : written.error().message(),
            "cannot write " + disk + "/a: No space left on device");
  EXPECT_EQ(content_of(disk + "/a"), "old");
  EXPECT_EQ(entries_of(disk), 1u);
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

// The same without root: a limit on the size of files stands in for the disk's end.
TEST(Files, AFileSizeLimitLeavesTheOldContent) {
  const Folder folder;
  ASSERT_TRUE(write_file_durably(folder / "a", "old").ok());
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Status written = write_file_durably(folder / "a", std::string(1u << 20, 'x'));
    ::_exit(!written.ok() && written.error().reason == "File too large" ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content_of(folder / "a"), "old");
  EXPECT_EQ(entries_of(folder.path()), 1u);
}

TEST(Files, DirectoriesAreMadeWithTheirParents) {
  const Folder folder;
  EXPECT_TRUE(make_directories(folder / "a/b//c/").ok());
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  EXPECT_TRUE(make_directories(folder / "a/b").ok());
  ASSERT_TRUE(write_file_durably(folder / "file", "x").ok());
  const Status made = make_directories(folder / "file/b");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(), "cannot make the folder " + (folder / "file") + ": Not a directory");
}

TEST(Files, RemoveFollowsNoLink) {
  const Folder folder;
  ASSERT_TRUE(make_directories(folder / "tree/a/b").ok());
  ASSERT_TRUE(make_directories(folder / "outside").ok());
  ASSERT_TRUE(write_file_durably(folder / "outside/precious", "x").ok());
  ASSERT_TRUE(write_file_durably(folder / "tree/a/b/file", "x").ok());
  ASSERT_EQ(::symlink((folder / "outside").c_str(), (folder / "tree/a/link").c_str()), 0);
  ASSERT_EQ(::symlink("/no/where", (folder / "tree/dangling").c_str()), 0);
  ASSERT_EQ(::symlink((folder / "outside").c_str(), (folder / "root-link").c_str()), 0);
  EXPECT_TRUE(remove_tree(folder / "tree").ok());
  EXPECT_FALSE(fs::exists(folder / "tree"));
  EXPECT_TRUE(remove_tree(folder / "root-link").ok());
  EXPECT_EQ(content_of(folder / "outside/precious"), "x");
  EXPECT_TRUE(remove_tree(folder / "tree").ok());  // not there: fine
}

TEST(Files, RandomHexIsLongAndNeverTheSame) {
  const std::string one = random_hex(32);
  EXPECT_EQ(one.size(), 64u);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, random_hex(32));
  EXPECT_EQ(random_hex(0), "");
}

TEST(DirectoryLock, OneHolderAtATime) {
  const Folder folder;
  {
    auto lock = DirectoryLock::take(folder / "lock");
    ASSERT_TRUE(lock.ok()) << lock.error().message();
    const auto second = DirectoryLock::take(folder / "lock");
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().reason, "held by pid " + std::to_string(::getpid()));
    DirectoryLock moved = *std::move(lock);
    EXPECT_FALSE(DirectoryLock::take(folder / "lock").ok());
  }
  EXPECT_TRUE(DirectoryLock::take(folder / "lock").ok());
}

TEST(DirectoryLock, TheEndOfTheHolderFreesIt) {
  const Folder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = DirectoryLock::take(folder / "lock");
    [[maybe_unused]] const auto told = ::write(ready[1], lock.ok() ? "y" : "n", 1);
    while (true)
      ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  const auto refused = DirectoryLock::take(folder / "lock");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, "held by pid " + std::to_string(child));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(DirectoryLock::take(folder / "lock").ok());
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace troika::platform
