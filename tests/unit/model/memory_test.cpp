// Proofs that are remembered: an unchanged tree is not read again, and nothing that changed is ever taken for
// unchanged. Modes 1, 8 and 9.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>

#include "agent/model/record.hpp"
#include "agent/model/witness.hpp"
#include "platform/files.hpp"
#include "platform/sqlite.hpp"
#include "tests/unit/model/tree.hpp"

namespace troika::model {
namespace {

using policies::ClockReading;
using policies::Remember;
using std::chrono::hours;
using std::chrono::seconds;

const std::string kShard = "model.safetensors";

// A place whose file system tells every change; what lies in memory is never remembered.
std::string local_disk() {
  for (const std::string& base : {testing::TempDir(), std::string{"./"}, std::string{"/var/tmp/"}}) {
    const platform::Folder probe(base);
    std::ofstream(probe / "file") << "x";
    const auto reader = FileReader::open(probe / "file");
    policies::WholeRead read;
    read.file_system = reader.ok() ? reader->file_system() : policies::FileSystem{};
    read.writers = policies::Writers::None;
    read.on_disk = true;
    read.stamp = reader.ok() ? reader->stamp() : FileStamp{};
    read.begin = read.end = {hours{1000000}, seconds{1}, "boot"};
    if (policies::may_remember(read) == Remember::Yes) return base;
  }
  ADD_FAILURE() << "these tests need a folder on a local disk: set TEST_TMPDIR to one";
  return testing::TempDir();
}

class MemoryTest : public TreeTest {
 protected:
  MemoryTest() : TreeTest(local_disk()) { open(); }

  std::string record_path() const { return state_ / "proofs.sqlite"; }
  void open() {
    record_.reset();
    auto opened = ProofRecord::open(record_path());
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    record_ = *std::move(opened);
  }

  // The machine's clocks `later_` on: what was just written is old then.
  ClockReading clock() const {
    ClockReading now = read_clocks();
    now.wall += later_ + jump_;
    now.boot += later_;
    return now;
  }
  ModelProof prove_with(const std::function<void(ProofPlan&)>& change = [](ProofPlan&) {}) {
    ProofPlan plan{folder_.path(), manifest_, "spark-1"};
    plan.crew.memory.record = record_.get();
    plan.crew.memory.clock = [this] { return clock(); };
    change(plan);
    const std::atomic<bool> cancel{false};
    ModelProof proof = prove_model(
        plan, [](const ProofProgress&) {}, cancel);
    EXPECT_TRUE(record_->health().ok()) << record_->health().error().message();
    return proof;
  }
  // A tree of two files, proven and remembered.
  void prove_two() {
    put(kShard, a01());
    put("config.json", "{}");
    const ModelProof proof = prove_with();
    ASSERT_TRUE(proof.findings.empty());
    EXPECT_EQ(proof.files, 2u);
    EXPECT_EQ(proof.cached, 0u);
    EXPECT_EQ(proof.bytes.count, a01().size() + 2);
    for (const FileProof& one : proof.list)
      EXPECT_EQ(one.remembered, Remember::Yes) << one.name << ": " << policies::text(*one.remembered);
  }
  // That everything is right, and how many of the two files were not read.
  void expect_cached(std::uint32_t files) {
    const ModelProof proof = prove_with();
    EXPECT_TRUE(proof.findings.empty());
    EXPECT_EQ(proof.files, 2u);
    EXPECT_EQ(proof.tensors, 1u);
    EXPECT_EQ(proof.cached, files);
  }
  void times_of(const std::string& name, const struct stat& facts) {
    const std::array<timespec, 2> times{facts.st_atim, facts.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path(name).c_str(), times.data(), 0), 0);
  }
  void only_remembered(const std::string& name, Remember why) {
    const ModelProof proof = prove_with();
    EXPECT_TRUE(proof.findings.empty());
    for (const FileProof& one : proof.list) {
      if (one.name == name) {
        EXPECT_EQ(one.remembered, why) << policies::text(one.remembered.value_or(Remember::Yes));
      }
    }
    EXPECT_EQ(prove_with().cached, proof.list.size() - 1);
  }

  platform::Folder state_;
  std::unique_ptr<ProofRecord> record_;
  Duration later_ = seconds{60};
  Duration jump_{};  // of the wall clock alone
};

TEST_F(MemoryTest, AnUnchangedTreeIsNotReadAgain) {
  prove_two();
  const ModelProof again = prove_with();
  EXPECT_TRUE(again.findings.empty());
  EXPECT_EQ(again.files, 2u);
  EXPECT_EQ(again.shards, 1u);
  EXPECT_EQ(again.tensors, 1u);
  EXPECT_EQ(again.cached, 2u);
  EXPECT_EQ(again.bytes.count, 0u);
  for (const FileProof& one : again.list) {
    EXPECT_TRUE(one.cached);
    EXPECT_EQ(one.status, "ok");
    EXPECT_EQ(one.sha256, manifest_.files.at(one.name).sha256);
  }
  open();  // another process, later
  later_ = hours{1000};
  expect_cached(2);
}

TEST_F(MemoryTest, DeepReadsEveryByte) {
  prove_two();
  const ModelProof deep = prove_with([](ProofPlan& plan) { plan.crew.memory.deep = true; });
  EXPECT_EQ(deep.cached, 0u);
  EXPECT_EQ(deep.bytes.count, a01().size() + 2);
  expect_cached(2);
}

TEST_F(MemoryTest, AProofThatIsTooOldCountsNoLonger) {
  prove_two();
  later_ += hours{2};
  const auto aged = [](Duration most) {
    return [most](ProofPlan& plan) { plan.crew.memory.most_age = most; };
  };
  EXPECT_EQ(prove_with(aged(hours{3})).cached, 2u);
  EXPECT_EQ(prove_with(aged(hours{1})).cached, 0u);
  EXPECT_EQ(prove_with(aged(hours{1})).cached, 2u) << "it was just read";
}

// The record says what the bytes are, not that they are right.
TEST_F(MemoryTest, AnotherManifestIsNotProvenByIt) {
  prove_two();
  list("config.json", "[]");
  const ModelProof proof = prove_with();
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::HASH_MISMATCH);
  EXPECT_EQ(proof.findings[0].subject, "config.json");
}

TEST_F(MemoryTest, WrongBytesAreNotRemembered) {
  put_wrong("config.json", "[]", "{}");
  put(kShard, a01());
  EXPECT_EQ(prove_with().findings.size(), 1u);
  const ModelProof again = prove_with();
  ASSERT_EQ(again.findings.size(), 1u);
  EXPECT_EQ(again.findings[0].code, Code::HASH_MISMATCH);
}

TEST_F(MemoryTest, AChangedFileIsReadAgainWhateverItsMtimeSays) {
  prove_two();
  struct stat before {};
  ASSERT_EQ(::stat(path(kShard).c_str(), &before), 0);
  std::string wrong = a01();
  wrong.back() ^= 1;
  write(kShard, wrong);
  times_of(kShard, before);
  const ModelProof proof = prove_with();
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::HASH_MISMATCH);
  EXPECT_EQ(proof.cached, 1u);
}

TEST_F(MemoryTest, ABitOfAnyOf46RememberedShardsIsFoundAndNamed) {
  std::vector<std::string> shards;
  for (int i = 1; i <= 46; ++i) {
    char number[8];
    std::snprintf(number, sizeof number, "%05d", i);
    shards.push_back(std::string("model-") + number + "-of-00046.safetensors");
    put(shards.back(), one_tensor("tensor" + std::to_string(i), std::string(100, 'd')));
  }
  ASSERT_TRUE(prove_with().findings.empty());
  ASSERT_EQ(prove_with().cached, 46u);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string& name = shards[i];
    struct stat before {
    }, after{};
    ASSERT_EQ(::stat(path(name).c_str(), &before), 0);
    std::string wrong = one_tensor("tensor" + std::to_string(i + 1), std::string(100, 'd'));
    wrong[wrong.size() - 1 - 2 * i] ^= static_cast<char>(1 << (i % 8));
    do {  // the file system's clock moves in ticks of some milliseconds
      write(name, wrong);
      times_of(name, before);
      ASSERT_EQ(::stat(path(name).c_str(), &after), 0);
    } while (after.st_ctim.tv_nsec == before.st_ctim.tv_nsec &&
             after.st_ctim.tv_sec == before.st_ctim.tv_sec);
    const ModelProof proof = prove_with();
    ASSERT_EQ(proof.findings.size(), i + 1);
    EXPECT_TRUE(std::any_of(proof.findings.begin(), proof.findings.end(), [&](const Finding& one) {
      return one.code == Code::HASH_MISMATCH && one.subject == name;
    })) << name;
  }
}

TEST_F(MemoryTest, AFileMovedIntoItsPlaceIsReadAgain) {
  prove_two();
  struct stat before {};
  ASSERT_EQ(::stat(path(kShard).c_str(), &before), 0);
  std::string wrong = a01();
  wrong.back() ^= 1;
  write("other", wrong);
  times_of("other", before);
  ASSERT_EQ(::rename(path("other").c_str(), path(kShard).c_str()), 0);
  EXPECT_EQ(prove_with().findings.size(), 1u);
}

TEST_F(MemoryTest, AStrayIsFoundInAKnownTree) {
  prove_two();
  write("extra.safetensors", a01());
  const ModelProof proof = prove_with();
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::EXTRA_FILE);
}

TEST_F(MemoryTest, AMissingFileIsFoundInAKnownTree) {
  prove_two();
  ASSERT_EQ(::unlink(path("config.json").c_str()), 0);
  const ModelProof proof = prove_with();
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::MISSING_FILE);
}

TEST_F(MemoryTest, ACopiedTreeIsRead) {
  prove_two();
  const platform::Folder copy(local_disk());
  ASSERT_EQ(std::system(("cp -a " + folder_.path() + "/. " + copy.path()).c_str()), 0);
  const ModelProof proof = prove_with([&](ProofPlan& plan) { plan.directory = copy.path(); });
  EXPECT_TRUE(proof.findings.empty());
  EXPECT_EQ(proof.cached, 0u);
  EXPECT_EQ(proof.bytes.count, a01().size() + 2);
}

// The same numbers of device and inode, the same times: another disk in its place.
TEST_F(MemoryTest, ARecordFromAnotherFileSystemIsNoProof) {
  prove_two();
  for (const std::string& name : {kShard, std::string{"config.json"}}) {
    const auto stamp = stamp_of(path(name));
    auto known = record_->find(*stamp);
    ASSERT_TRUE(known.has_value());
    known->file_system.id ^= 1;
    record_->put(*known);
  }
  expect_cached(0);
  expect_cached(2);
}

TEST_F(MemoryTest, AClockThatJumpedEndsWhatWasRemembered) {
  prove_two();
  jump_ = hours{-1};
  expect_cached(0);
  jump_ = {};
  open();
  jump_ = hours{1};
  expect_cached(0);
}

TEST_F(MemoryTest, AfterARebootOnlyALaterClockCounts) {
  prove_two();
  const auto rebooted = [this](Duration wall) {
    return [this, wall](ProofPlan& plan) {
      plan.crew.memory.clock = [this, wall] {
        return ClockReading{clock().wall + wall, seconds{9}, "another boot"};
      };
    };
  };
  EXPECT_EQ(prove_with(rebooted(hours{-1})).cached, 0u) << "its clock was not set yet";
  EXPECT_EQ(prove_with(rebooted(hours{2})).cached, 2u);
}

TEST_F(MemoryTest, AClockSetWhileItReadsIsSeen) {
  put(kShard, a01());
  const ModelProof proof = prove_with(
      [this](ProofPlan& plan) { plan.crew.after_piece = [this](std::uint64_t) { jump_ = hours{5}; }; });
  ASSERT_EQ(proof.list.size(), 1u);
  EXPECT_EQ(proof.list[0].remembered, Remember::ClockJumped);
  EXPECT_EQ(prove_with().cached, 0u);
}

TEST_F(MemoryTest, WhatChangedJustNowIsNotRemembered) {
  later_ = {};
  put(kShard, a01());
  put("config.json", "{}");
  for (int i = 0; i < 2; ++i) {
    const ModelProof proof = prove_with();
    EXPECT_TRUE(proof.findings.empty());
    EXPECT_EQ(proof.cached, 0u);
    for (const FileProof& one : proof.list)
      EXPECT_EQ(one.remembered, Remember::ChangedJustNow);
  }
  later_ = seconds{60};
  expect_cached(0);
  expect_cached(2);
}

TEST_F(MemoryTest, AFileFromTheFutureIsNotRemembered) {
  put(kShard, a01());
  put("config.json", "{}");
  struct stat facts {};
  ASSERT_EQ(::stat(path(kShard).c_str(), &facts), 0);
  facts.st_mtim.tv_sec += 1000000;
  times_of(kShard, facts);
  only_remembered(kShard, Remember::ChangedJustNow);
}

TEST_F(MemoryTest, WhatSomebodyHasOpenForWritingIsNotRemembered) {
  put(kShard, a01());
  put("config.json", "{}");
  {
    const platform::UniqueFd writer{::open(path(kShard).c_str(), O_WRONLY | O_CLOEXEC)};
    ASSERT_TRUE(writer);
    only_remembered(kShard, Remember::OpenForWriting);
  }
  expect_cached(1);
  expect_cached(2);
}

// A store into a mapping changes the bytes and, after the first one, not the times.
TEST_F(MemoryTest, WhatSomebodyHasMappedForWritingIsNotRemembered) {
  put(kShard, a01());
  put("config.json", "{}");
  platform::UniqueFd writer{::open(path(kShard).c_str(), O_RDWR | O_CLOEXEC)};
  ASSERT_TRUE(writer);
  auto* const map =
      static_cast<char*>(::mmap(nullptr, 65, PROT_READ | PROT_WRITE, MAP_SHARED, writer.get(), 0));
  ASSERT_NE(map, MAP_FAILED);
  writer.reset();
  map[64] = a01()[64];
  only_remembered(kShard, Remember::OpenForWriting);
  map[64] ^= 1;
  const ModelProof proof = prove_with();
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::HASH_MISMATCH);
  EXPECT_EQ(proof.findings[0].subject, kShard);
  ::munmap(map, 65);
}

TEST_F(MemoryTest, NothingInMemoryIsRemembered) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm";
  const platform::Folder memory("/dev/shm/");
  std::ofstream(memory / kShard, std::ios::binary) << a01();
  list(kShard, a01());
  for (int i = 0; i < 2; ++i) {
    const ModelProof proof = prove_with([&](ProofPlan& plan) { plan.directory = memory.path(); });
    EXPECT_TRUE(proof.findings.empty());
    ASSERT_EQ(proof.list.size(), 1u);
    EXPECT_EQ(proof.list[0].remembered, Remember::OtherFileSystem);
    EXPECT_EQ(proof.cached, 0u);
  }
}

// Duplicate tensors are no matter of one file's bytes: a tree with such a fault is never "cached".
TEST_F(MemoryTest, AFaultBetweenFilesIsFoundEveryTime) {
  put("model-00001-of-00002.safetensors", one_tensor("a"));
  put("model-00002-of-00002.safetensors", one_tensor("a"));
  for (int i = 0; i < 3; ++i) {
    const ModelProof proof = prove_with();
    ASSERT_FALSE(proof.findings.empty());
    EXPECT_EQ(verdict_of(proof.findings), Verdict::Error);
  }
}

TEST_F(MemoryTest, InformationIsRepeatedFromTheRecord) {
  put(kShard, one_tensor("a"));
  put("model.safetensors.index.json",
      R"({"metadata":{"total_size":999},"weight_map":{"a":"model.safetensors"}})");
  const ModelProof first = prove_with();
  ASSERT_EQ(first.findings.size(), 1u);
  EXPECT_EQ(first.findings[0].severity, Severity::Info);
  const ModelProof again = prove_with();
  EXPECT_EQ(again.cached, 2u);
  ASSERT_EQ(again.findings.size(), 1u);
  EXPECT_EQ(again.findings[0].message, first.findings[0].message);
  EXPECT_EQ(again.findings[0].node, "spark-1");
}

// The prover is killed at any moment, between two bytes read or in the midst of writing the record down.
TEST_F(MemoryTest, KilledAtAnyMomentTheRecordStaysSoundAndTrue) {
  constexpr int kFiles = 12;
  const auto content = [](int file) { return std::string(500000, static_cast<char>('a' + file)); };
  for (int i = 0; i < kFiles; ++i)
    put("file-" + std::to_string(i), content(i));
  std::minstd_rand random(1);
  int killed = 0;
  std::size_t remembered = 0;
  // The first child is not killed, the second at once; the time of the first bounds when the others are.
  std::chrono::microseconds whole{};
  for (int round = 0; round < 60; ++round) {
    record_.reset();
    const auto began = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      open();
      (void)prove_with([](ProofPlan& plan) { plan.crew.memory.deep = true; });
      ::_exit(0);
    }
    if (round > 1)
      ::usleep(static_cast<useconds_t>(random() % static_cast<unsigned long>(whole.count() + 1)));
    if (round > 0) ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    if (round == 0) {
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      whole = std::min(
          std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began),
          std::chrono::microseconds(500000));
    }
    open();
    for (int i = 0; i < kFiles; ++i) {
      const auto stamp = stamp_of(path("file-" + std::to_string(i)));
      ASSERT_TRUE(stamp.ok());
      const auto known = record_->find(*stamp);
      if (!known) continue;
      ++remembered;
      EXPECT_EQ(known->sha256, sha256_hex(content(i)));
    }
    ASSERT_TRUE(record_->health().ok()) << record_->health().error().message();
  }
  EXPECT_GT(killed, 0);
  EXPECT_GT(remembered, 0u);
  EXPECT_TRUE(prove_with().findings.empty());
  EXPECT_EQ(prove_with().cached, 12u);
}

// Whoever may write the record may have any bytes believed.
TEST(ProofRecordTest, IsNotUsedWhereOthersMayWriteIt) {
  const platform::Folder folder;
  const std::string path = folder / "proofs.sqlite";
  ASSERT_TRUE(ProofRecord::open(path).ok());
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_FALSE(ProofRecord::open(path).ok());
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(ProofRecord::open(path).ok());
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::seteuid(65533), 0);
  const bool used = ProofRecord::open(path).ok();
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_FALSE(used);
}

TEST(ProofRecordTest, ANewerOneIsLeftAlone) {
  const platform::Folder folder;
  const std::string path = folder / "proofs.sqlite";
  ASSERT_TRUE(ProofRecord::open(path).ok());
  ASSERT_EQ(std::system(("python3 -c \"import sqlite3; d = sqlite3.connect('" + path +
                         "'); d.execute('pragma user_version = 99'); d.commit()\"")
                            .c_str()),
            0);
  const auto opened = ProofRecord::open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message().find("99"), std::string::npos) << opened.error().message();
}

// Damaged in the middle: what SQLite tells of it ends the use of the record, and the proof goes on.
TEST_F(MemoryTest, ADamagedRecordIsNotBelieved) {
  prove_two();
  record_.reset();
  {
    std::fstream file(record_path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(16384, '\xAA');
  }
  auto opened = ProofRecord::open(record_path());
  if (!opened.ok()) return;  // told at once
  ProofPlan plan{folder_.path(), manifest_, "spark-1"};
  plan.crew.memory.record = opened->get();
  plan.crew.memory.clock = [this] { return clock(); };
  const std::atomic<bool> cancel{false};
  const ModelProof proof = prove_model(
      plan, [](const ProofProgress&) {}, cancel);
  EXPECT_TRUE(proof.findings.empty());
  EXPECT_EQ(proof.files, 2u);
  EXPECT_EQ(proof.cached, 0u);
  EXPECT_FALSE((*opened)->health().ok());
}

TEST(ProofRecordTest, KeepsNumbersOf64Bits) {
  const platform::Folder folder;
  auto record = ProofRecord::open(folder / "proofs.sqlite");
  ASSERT_TRUE(record.ok());
  policies::Remembered one;
  one.sha256 = "digest";
  for (std::uint64_t i = 0; i < 5; ++i) {
    one.stamp.device = ~std::uint64_t{0} - i;
    one.stamp.inode = std::uint64_t{1} << 63 | i;
    one.proven.wall = seconds{i};
    (*record)->put(one);
  }
  one.stamp.device = ~std::uint64_t{0} - 3;
  one.stamp.inode = std::uint64_t{1} << 63 | 3;
  const auto found = (*record)->find(one.stamp);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->stamp, one.stamp);
  EXPECT_EQ(found->proven.wall, seconds{3});
  one.stamp.inode += 100;
  EXPECT_FALSE((*record)->find(one.stamp).has_value());
  EXPECT_TRUE((*record)->health().ok());
}

}  // namespace
}  // namespace troika::model
