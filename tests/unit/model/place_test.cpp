// Links, strays, things that are no files, files that change. Modes 3, 5 and 8.
#include <sys/stat.h>

#include "tests/unit/model/tree.hpp"

namespace troika::model {
namespace {

const std::string kPlacedShard = "model.safetensors";

TEST_F(TreeTest, LinksInsideTheDirectoryAreGood) {
  ASSERT_TRUE(platform::make_directories(path("data")).ok());
  write("data/x", a01());
  list(kPlacedShard, a01());
  ASSERT_EQ(::symlink("data/x", path(kPlacedShard).c_str()), 0);
  EXPECT_TRUE(prove().findings.empty());
}

TEST_F(TreeTest, TheCacheOfHuggingfaceHubIsGood) {
  const std::string repository = path("models--org--name");
  const std::string snapshot = repository + "/snapshots/abc";
  ASSERT_TRUE(platform::make_directories(snapshot).ok());
  ASSERT_TRUE(platform::make_directories(repository + "/blobs").ok());
  write("models--org--name/blobs/digest", a01());
  list(kPlacedShard, a01());
  ASSERT_EQ(::symlink("../../blobs/digest", (snapshot + "/" + kPlacedShard).c_str()), 0);
  const std::atomic<bool> cancel{false};
  EXPECT_TRUE(prove_model(
                  {snapshot, manifest_, ""}, [](const ProofProgress&) {}, cancel)
                  .findings.empty());
}

TEST_F(TreeTest, LinksThatLeadOutOrRoundOrNowhere) {
  const platform::Folder elsewhere;
  std::ofstream(elsewhere / "x", std::ios::binary) << a01();
  list(kPlacedShard, a01());
  ASSERT_EQ(::symlink((elsewhere / "x").c_str(), path(kPlacedShard).c_str()), 0);
  EXPECT_EQ(only_error().code, Code::LINK_ESCAPES_TREE);
  ::unlink(path(kPlacedShard).c_str());
  ASSERT_EQ(::symlink(kPlacedShard.c_str(), path(kPlacedShard).c_str()), 0);
  EXPECT_EQ(only_error().code, Code::SYMLINK_LOOP);
  ::unlink(path(kPlacedShard).c_str());
  ASSERT_EQ(::symlink("not-here", path(kPlacedShard).c_str()), 0);
  EXPECT_EQ(only_error().code, Code::MISSING_SHARD);
  ::unlink(path(kPlacedShard).c_str());
  EXPECT_EQ(only_error().code, Code::MISSING_SHARD);
}

TEST_F(TreeTest, AMissingFileThatIsNoShard) {
  put(kPlacedShard, a01());
  list("tokenizer.json", "{}");
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::MISSING_FILE);
  EXPECT_EQ(f.subject, "tokenizer.json");
}

TEST_F(TreeTest, ThingsThatAreNoFiles) {
  list(kPlacedShard, a01());
  ASSERT_TRUE(platform::make_directories(path(kPlacedShard)).ok());
  EXPECT_EQ(only_error().code, Code::NOT_A_FILE);
  ASSERT_EQ(::rmdir(path(kPlacedShard).c_str()), 0);
  ASSERT_EQ(::mkfifo(path(kPlacedShard).c_str(), 0600), 0);
  EXPECT_EQ(only_error().code, Code::NOT_A_FILE) << "and it does not wait for a writer";
}

TEST_F(TreeTest, AFileThatMayNotBeRead) {
  put(kPlacedShard, a01());
  ASSERT_EQ(::chmod(path(kPlacedShard).c_str(), 0), 0);
  // Root may read everything, so root looks as nobody.
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::chmod(path(".").c_str(), 0755), 0);
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const Code code = only_error().code;
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(code, Code::UNREADABLE);
}

TEST_F(TreeTest, ADirectoryThatIsNotThere) {
  list(kPlacedShard, a01());
  const std::atomic<bool> cancel{false};
  const ModelProof proof = prove_model(
      {path("nowhere"), manifest_, ""}, [](const ProofProgress&) {}, cancel);
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::UNREADABLE);
}

TEST_F(TreeTest, StraysThatALoaderWouldTake) {
  put(kPlacedShard, a01());
  for (const char* name : {"consolidated.safetensors", "old.safetensors.index.json", "pytorch_model.bin",
                           "modeling_x.py", "chat_template.jinja", "adapter_config.json"}) {
    write(name, "x");
    const Finding f = only_error();
    EXPECT_EQ(f.code, Code::EXTRA_FILE) << name;
    EXPECT_EQ(f.subject, name);
    ::unlink(path(name).c_str());
  }
  for (const char* name : {"README.md", "LICENSE", ".gitattributes", "notes.txt"})
    write(name, "x");
  EXPECT_TRUE(prove().findings.empty());
}

TEST_F(TreeTest, RemainsOfADownloadAreSaidAndNoFault) {
  put(kPlacedShard, a01());
  ASSERT_TRUE(platform::make_directories(path(".cache/huggingface/download")).ok());
  write(".cache/huggingface/download/abc.def.incomplete", "x");
  const ModelProof proof = prove();
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::LEFTOVER_INCOMPLETE);
  EXPECT_EQ(verdict_of(proof.findings), Verdict::Ok);
}

// Mode 9: space that was set aside and never written.
TEST_F(TreeTest, ZerosAtTheEndAreNamed) {
  std::string data(64 * 1024, 'x');
  const std::string header = R"({"a":{"dtype":"U8","shape":[65536],"data_offsets":[0,65536]}})";
  const std::string good = shard_of(header, data);
  std::fill(data.begin() + 20000, data.end(), '\0');
  put_wrong(kPlacedShard, shard_of(header, data), good);
  EXPECT_EQ(only_error().code, Code::ZERO_FILLED);
}

TEST_F(TreeTest, ZerosAtTheEndAreCountedToTheByte) {
  const std::string good = one_tensor("a", std::string(70'001, 'x'));
  for (const std::size_t zeros : {4096u, 4097u, 65'536u, 70'001u}) {
    put_wrong(kPlacedShard, good.substr(0, good.size() - zeros) + std::string(zeros, '\0'), good);
    const Finding f = only_error();
    EXPECT_EQ(f.code, Code::ZERO_FILLED) << zeros;
    EXPECT_EQ(evidence(f, "zero_bytes_at_the_end"), std::to_string(zeros));
  }
  // The last bytes of a model may be zeros by right.
  put_wrong(kPlacedShard, good.substr(0, good.size() - 4095) + std::string(4095, '\0'), good);
  EXPECT_EQ(only_error().code, Code::HASH_MISMATCH);
  put(kPlacedShard, good);
  put_wrong("config.json", std::string(64, '\0'), std::string(64, ' '));
  EXPECT_EQ(only_error().code, Code::ZERO_FILLED) << "all of it";
}

TEST_F(TreeTest, ABlockOfZerosIsNamedWhereverItIs) {
  const std::string good = one_tensor("a", std::string(400'000, 'x'));
  put(kPlacedShard, good);
  ManifestFile& file = manifest_.files[kPlacedShard];
  file.block_bytes = Bytes{65'536};
  for (std::size_t at = 0; at < good.size(); at += 65'536)
    file.blocks.push_back(sha256_hex(good.substr(at, 65'536)));
  std::string bad = good;
  std::fill_n(bad.begin() + 2 * 65'536, 65'536, '\0');
  write(kPlacedShard, bad);
  Finding f = only_error();
  EXPECT_EQ(f.code, Code::ZERO_FILLED);
  EXPECT_EQ(evidence(f, "block"), "2");
  bad = good;
  std::fill_n(bad.begin() + 2 * 65'536 + 4096, 8192, '\0');
  write(kPlacedShard, bad);
  f = only_error();
  EXPECT_EQ(f.code, Code::HASH_MISMATCH) << "a model has pages of zeros of its own";
  EXPECT_EQ(evidence(f, "zero_bytes_in_wrong_blocks"), "8192");
}

TEST_F(TreeTest, AFileThatGrowsWhileItIsReadProvesNothing) {
  const std::string content = one_tensor("a", std::string(9u << 20, 'x'));
  put(kPlacedShard, content);
  const std::atomic<bool> cancel{false};
  bool grown = false;
  ProofPlan plan{folder_.path(), manifest_, ""};
  plan.crew.after_piece = [&](std::uint64_t) {
    if (!std::exchange(grown, true))
      std::ofstream(path(kPlacedShard), std::ios::binary | std::ios::app) << "more";
  };
  const ModelProof proof = prove_model(
      plan, [](const ProofProgress&) {}, cancel);
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::CHANGED_WHILE_READ);
}

// More information than a report holds does not push an error out of it.
TEST_F(TreeTest, AnErrorIsNotLostAmongInformation) {
  for (int i = 0; i < 300; ++i)
    write("part" + std::to_string(i) + ".incomplete", "");
  put_wrong(kPlacedShard, one_tensor("a", "datA"), one_tensor("a", "data"));
  const ModelProof proof = prove();
  EXPECT_EQ(verdict_of(proof.findings), Verdict::Error);
  ASSERT_FALSE(proof.findings.empty());
  EXPECT_EQ(proof.findings[0].code, Code::HASH_MISMATCH);
  EXPECT_LE(proof.findings.size(), 256u);
}

TEST_F(TreeTest, IsCancelledBetweenTwoBlocks) {
  put(kPlacedShard, one_tensor("a", std::string(40u << 20, 'x')));
  std::atomic<bool> cancel{false};
  ProofPlan plan{folder_.path(), manifest_, ""};
  plan.crew.after_piece = [&](std::uint64_t bytes) { cancel = bytes >= 2u << 20; };
  int calls = 0;
  const ModelProof proof = prove_model(
      plan,
      [&](const ProofProgress& at) {
        EXPECT_EQ(at.total.count, manifest_.files[kPlacedShard].bytes.count);
        EXPECT_EQ(at.files_total, 1u);
        ++calls;
      },
      cancel);
  EXPECT_GE(calls, 1);
  EXPECT_TRUE(proof.cancelled);
  EXPECT_GE(proof.bytes.count, 2u << 20);
  EXPECT_LE(proof.bytes.count, 3u << 20);
  EXPECT_EQ(proof.files, 0u);
}

TEST_F(TreeTest, SmallFilesMayBeProvenByGitsId) {
  put(kPlacedShard, a01());
  write("config.json", "hello\n");
  manifest_.files["config.json"] = {Bytes{6}, "", "ce013625030ba8dba906f756967f9e9ca394464a"};
  EXPECT_TRUE(prove().findings.empty());
  write("config.json", "hellO\n");
  EXPECT_EQ(only_error().code, Code::HASH_MISMATCH);
}

}  // namespace
}  // namespace troika::model
