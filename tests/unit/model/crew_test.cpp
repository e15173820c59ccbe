// Many files at once: every digest is right whatever the sizes and the number of threads, each file's fault
// is its own.
#include "agent/model/crew.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "agent/model/digest.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::model {
namespace {

class CrewTest : public testing::Test {
 protected:
  void add(std::size_t size, bool out_of_cache = false) {
    std::string bytes(size, '\0');
    for (char& c : bytes)
      c = static_cast<char>(random_());
    const std::string name = "f" + std::to_string(tasks_.size());
    const std::string path = folder_ / name;
    const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    if (out_of_cache) {
      ASSERT_EQ(::fdatasync(fd), 0);
      ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    }
    ::close(fd);
    tasks_.push_back({name, path, size, ManifestFile{Bytes{size}, sha256_hex(bytes), ""}, 0});
  }

  std::vector<Reading> read(unsigned threads) {
    CrewOptions options;
    options.threads = threads;
    return read_files(
        tasks_, options, [this](const CrewProgress& now) { last_ = now; }, cancel_);
  }

  platform::Folder folder_;
  std::mt19937 random_{7};
  std::vector<CrewTask> tasks_;
  std::atomic<bool> cancel_{false};
  CrewProgress last_;
};

// Below, at and beyond the pieces of the cache and of the disk; mixed, so that the lanes run out at different
// times.
TEST_F(CrewTest, EveryDigestIsRight) {
  std::uint64_t sum = 0;
  for (const std::size_t size : {0u, 1u, 63u, 64u, 4095u, 4096u, 4097u, 262'143u, 262'144u, 262'145u,
                                 1'048'575u, 1'048'576u, 1'048'577u, 3'000'000u, 5'242'880u}) {
    add(size);
    add(size, true);
    sum += 2 * size;
  }
  for (const unsigned threads : {1u, 2u, 3u, 8u}) {
    const auto readings = read(threads);
    ASSERT_EQ(readings.size(), tasks_.size());
    for (std::size_t i = 0; i < readings.size(); ++i) {
      EXPECT_FALSE(readings[i].finding) << readings[i].finding->message;
      EXPECT_EQ(readings[i].sha256, tasks_[i].expected.sha256) << tasks_[i].bytes << " bytes";
    }
    EXPECT_EQ(last_.bytes, sum);
    EXPECT_EQ(last_.files, tasks_.size());
  }
}

std::size_t cached_pages(const std::string& path, std::size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  EXPECT_EQ(::mincore(map, bytes, pages.data()), 0);
  ::munmap(map, bytes);
  ::close(fd);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; }));
}

// A model of 168 GB would push everything else out of memory.
TEST_F(CrewTest, LeavesThePageCacheAsItWas) {
  constexpr std::size_t kBytes = 16u << 20;
  add(kBytes, true);
  add(kBytes, true);
  const std::size_t before = cached_pages(tasks_[0].path, kBytes) + cached_pages(tasks_[1].path, kBytes);
  if (before > 100) GTEST_SKIP() << "a file system in memory";
  EXPECT_FALSE(read(1)[0].finding);
  const std::size_t after = cached_pages(tasks_[0].path, kBytes) + cached_pages(tasks_[1].path, kBytes);
  EXPECT_LE(after, before + 2 * kBytes / 4096 / 100);
}

TEST_F(CrewTest, NothingToReadIsNoWork) {
  EXPECT_TRUE(read(2).empty());
}

TEST_F(CrewTest, EachFaultIsOfItsOwnFile) {
  for (int i = 0; i < 6; ++i)
    add(300'000);
  std::filesystem::remove(tasks_[1].path);
  std::filesystem::remove(tasks_[3].path);
  std::filesystem::create_directory(tasks_[3].path);
  tasks_[4].expected.sha256[0] = tasks_[4].expected.sha256[0] == '0' ? '1' : '0';
  const auto readings = read(2);
  EXPECT_FALSE(readings[0].finding || readings[2].finding || readings[5].finding);
  ASSERT_TRUE(readings[1].finding && readings[3].finding && readings[4].finding);
  EXPECT_EQ(readings[1].finding->code, Code::UNREADABLE);
  EXPECT_EQ(readings[3].finding->code, Code::NOT_A_FILE);
  EXPECT_EQ(readings[4].finding->code, Code::HASH_MISMATCH);
  EXPECT_EQ(readings[4].finding->subject, "f4");
}

// Mode 9 and the like: the block that differs, and how many more.
TEST_F(CrewTest, NamesTheBlockThatDiffers) {
  constexpr std::size_t kBlock = 65'536;
  add(10 * kBlock + 100);
  CrewTask& task = tasks_[0];
  task.expected.block_bytes = Bytes{kBlock};
  // Zeros at its end that are its own.
  ASSERT_EQ(::truncate(task.path.c_str(), 10 * kBlock - 8192), 0);
  ASSERT_EQ(::truncate(task.path.c_str(), 10 * kBlock + 100), 0);
  std::string bytes(task.bytes, '\0');
  int fd = ::open(task.path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::pread(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  task.expected.sha256 = sha256_hex(bytes);
  for (std::size_t at = 0; at < bytes.size(); at += kBlock)
    task.expected.blocks.push_back(sha256_hex(std::string_view(bytes).substr(at, kBlock)));
  for (const std::size_t place :
       {std::size_t{0}, kBlock - 1, kBlock, 7 * kBlock + 5, 10 * kBlock, 10 * kBlock + 99}) {
    const char wrong = static_cast<char>(bytes[place] ^ 0x10);
    ASSERT_EQ(::pwrite(fd, &wrong, 1, static_cast<off_t>(place)), 1);
    const auto readings = read(1);
    ASSERT_TRUE(readings[0].finding);
    const Evidence& evidence = readings[0].finding->evidence;
    const auto found = [&](const char* key) {
      for (const auto& [name, value] : evidence)
        if (name == key) return std::get<std::int64_t>(value);
      return std::int64_t{-1};
    };
    EXPECT_EQ(found("block"), static_cast<std::int64_t>(place / kBlock)) << place;
    EXPECT_EQ(found("wrong_blocks"), 1);
    ASSERT_EQ(::pwrite(fd, &bytes[place], 1, static_cast<off_t>(place)), 1);
  }
  ::close(fd);
  EXPECT_FALSE(read(1)[0].finding);
}

TEST_F(CrewTest, TakesTheDigestsOfBlocksToo) {
  constexpr std::size_t kBlock = 300'000;  // not a multiple of the pieces
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kBlock, 3 * kBlock, 7 * kBlock + 12'345})
    add(size);
  for (CrewTask& task : tasks_)
    task.block_bytes = kBlock;
  const auto readings = read(2);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    ASSERT_EQ(readings[i].blocks.size(), (tasks_[i].bytes + kBlock - 1) / kBlock);
    EXPECT_EQ(readings[i].sha256, tasks_[i].expected.sha256);
    tasks_[i].expected.block_bytes = Bytes{kBlock};
    tasks_[i].expected.blocks = readings[i].blocks;
  }
  const int fd = ::open(tasks_[4].path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::pwrite(fd, "Troika", 6, 2 * kBlock - 3), 6);  // over the border of two blocks
  ::close(fd);
  const auto again = read(2);
  ASSERT_TRUE(again[4].finding);
  EXPECT_NE(again[4].finding->message.find("(block 1) and 1 more block"), std::string::npos)
      << again[4].finding->message;
  EXPECT_FALSE(again[3].finding);
}

TEST_F(CrewTest, ACancelledReadingSaysNothing) {
  for (int i = 0; i < 4; ++i)
    add(2'000'000);
  cancel_ = true;
  for (const Reading& one : read(2)) {
    EXPECT_EQ(one.sha256, "");
    EXPECT_FALSE(one.finding);
  }
  EXPECT_EQ(last_.bytes, 0u);
}

}  // namespace
}  // namespace troika::model
