// Manifests from directories and from what Hugging Face's tools leave: field/engines H.
#include "agent/model/pin.hpp"

#include <filesystem>

#include "tests/unit/model/tree.hpp"

namespace troika::model {
namespace {

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

class PinTest : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& content) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  Result<Pinned> pin(const std::string& directory) {
    PinPlan plan{directory, "", ""};
    plan.block_bytes = Bytes{100'000};
    return pin_directory(
        plan, [](const PinProgress&) {}, cancel_);
  }
  ModelProof prove(const std::string& directory, const Manifest& manifest) {
    return prove_model(
        {directory, manifest, ""}, [](const ProofProgress&) {}, cancel_);
  }

  platform::Folder folder_;
  std::atomic<bool> cancel_{false};
};

TEST_F(PinTest, WhatIsPinnedIsProven) {
  put("m/model.safetensors", one_tensor("a", std::string(250'000, 'x')));
  put("m/config.json", "{}");
  put("m/sub/notes.txt", "notes");
  put("m/.cache/huggingface/x", "not the model's");
  const auto pinned = pin(folder_ / "m");
  ASSERT_TRUE(pinned.ok()) << pinned.error().message();
  EXPECT_TRUE(pinned->findings.empty());
  const Manifest& manifest = pinned->manifest;
  EXPECT_EQ(manifest.model, "m");
  EXPECT_EQ(manifest.revision, "unpinned");
  ASSERT_EQ(manifest.files.size(), 3u);
  EXPECT_EQ(manifest.files.at("sub/notes.txt").sha256, sha256_hex("notes"));
  EXPECT_EQ(manifest.files.at("model.safetensors").blocks.size(), 3u);
  EXPECT_TRUE(manifest.files.at("config.json").blocks.empty()) << "a small file is its own block";
  const auto again = parse_manifest(write_manifest(manifest), "test");
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(*again, manifest);
  EXPECT_TRUE(prove(folder_ / "m", *again).findings.empty());
}

TEST_F(PinTest, AnEmptyOrMissingDirectoryIsAnError) {
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_FALSE(pin(folder_ / "empty").ok());
  EXPECT_FALSE(pin(folder_ / "missing").ok());
}

// models--org--name/snapshots/COMMIT, links into blobs.
TEST_F(PinTest, ASnapshotOfTheHubsCacheTellsModelAndRevision) {
  const std::string repo = "hub/models--org--name/";
  const std::string shard = one_tensor("a"), config = "hello\n";
  const std::string git = "ce013625030ba8dba906f756967f9e9ca394464a";
  put(repo + "blobs/" + sha256_hex(shard), shard);
  put(repo + "blobs/" + git, config);
  const std::string snapshot = folder_ / (repo + "snapshots/" + kCommit);
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_symlink("../../blobs/" + sha256_hex(shard), snapshot + "/model.safetensors");
  std::filesystem::create_symlink("../../blobs/" + git, snapshot + "/config.json");
  const auto pinned = pin(snapshot);
  ASSERT_TRUE(pinned.ok()) << pinned.error().message();
  EXPECT_EQ(pinned->manifest.model, "org/name");
  EXPECT_EQ(pinned->manifest.revision, kCommit);

  EXPECT_EQ(tree_of_snapshot(snapshot), "");
  const std::string tree =
      put(repo + "trees/" + kCommit + ".json",
          R"({"format_version":1,"files":{"model.safetensors":{"size":130,"blob_id":"x","lfs_sha256":")" +
              sha256_hex(shard) + R"(","lfs_size":)" + std::to_string(shard.size()) +
              R"(},"config.json":{"size":6,"blob_id":")" + git + R"("}}})");
  EXPECT_TRUE(std::filesystem::equivalent(tree_of_snapshot(snapshot), tree));
  const auto imported = import_tree(tree, "", "");
  ASSERT_TRUE(imported.ok()) << imported.error().message();
  EXPECT_EQ(imported->model, "org/name");
  EXPECT_EQ(imported->revision, kCommit);
  EXPECT_EQ(imported->files.at("model.safetensors").bytes.count, shard.size());
  EXPECT_EQ(imported->files.at("config.json").git_sha1, git);
  EXPECT_TRUE(prove(snapshot, *imported).findings.empty());
  put(repo + "blobs/" + git, "hellO\n");
  const auto proof = prove(snapshot, *imported);
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::HASH_MISMATCH);
}

TEST_F(PinTest, TreesThatCannotBeUsedAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "format_version 1"},
      {R"({"format_version":2,"files":{}})", "format_version 1"},
      {R"({"format_version":1})", "\"files\" must be an object"},
      {R"({"format_version":1,"files":{"a":5}})", "files.a must be an object"},
      {R"({"format_version":1,"files":{"a":{"size":1}}})", "files.a has neither lfs_sha256 nor blob_id"},
      {R"({"format_version":1,"files":{"a":{"blob_id":"ce013625030ba8dba906f756967f9e9ca394464a"}}})",
       "files.a has no size"},
      {R"({"format_version":1,"files":{"a":{"size":1,"blob_id":"xyz"}}})", "neither SHA-256 nor a Git id"},
      {R"({"format_version":1,"files":{"../a":{"size":1,"blob_id":"ce013625030ba8dba906f756967f9e9ca394464a"}}})",
       "leads out of the model directory"},
      {R"({"format_version":1,"files":{}})", "names no file"},
      {"{", "not JSON"}};
  for (const auto& [text, part] : cases) {
    const auto imported = import_tree(put("hub/models--o--n/trees/" + kCommit + ".json", text), "", "");
    ASSERT_FALSE(imported.ok()) << text;
    EXPECT_NE(imported.error().message().find(part), std::string::npos) << imported.error().message();
  }
  const std::string good = R"({"format_version":1,"files":{"a":{"size":1,"blob_id":")" + kCommit + R"("}}})";
  EXPECT_FALSE(import_tree(put("tree.json", good), "org/name", "").ok()) << "its name is no commit";
  EXPECT_FALSE(import_tree(put(kCommit + ".json", good), "", "").ok()) << "its path names no model";
  EXPECT_TRUE(import_tree(put("tree.json", good), "org/name", kCommit).ok());
}

TEST_F(PinTest, ADirectoryOfLocalDirIsPinnedByItsMetadata) {
  const std::string shard = one_tensor("a");
  const std::string meta = "m/.cache/huggingface/download/";
  put("m/model.safetensors", shard);
  put("m/sub/config.json", "hello\n");
  put(meta + "model.safetensors.metadata", kCommit + "\n" + sha256_hex(shard) + "\n1754000000.5\n");
  put(meta + "sub/config.json.metadata",
      kCommit + "\nce013625030ba8dba906f756967f9e9ca394464a\n1754000000.5\n");
  const auto imported = import_local_directory(folder_ / "m", "org/name", Gone::Listed);
  ASSERT_TRUE(imported.ok()) << imported.error().message();
  EXPECT_EQ(imported->revision, kCommit);
  ASSERT_EQ(imported->files.size(), 2u);
  EXPECT_TRUE(prove(folder_ / "m", *imported).findings.empty());
  put("m/sub/config.json", "hellO\n");
  EXPECT_EQ(prove(folder_ / "m", *imported).findings.size(), 1u);

  // What is gone since is missed.
  std::filesystem::remove(folder_ / "m/model.safetensors");
  const auto without = import_local_directory(folder_ / "m", "", Gone::Listed);
  ASSERT_TRUE(without.ok()) << without.error().message();
  const auto refused = import_local_directory(folder_ / "m", "", Gone::Refused);
  ASSERT_FALSE(refused.ok()) << "other machines would be held to a size of 0";
  EXPECT_NE(refused.error().message().find("model.safetensors was fetched and is gone"), std::string::npos);
  const auto proof = prove(folder_ / "m", *without);
  EXPECT_TRUE(std::any_of(proof.findings.begin(), proof.findings.end(),
                          [](const Finding& one) { return one.code == Code::MISSING_SHARD; }));

  // Shards that were never fetched have no metadata; a download that goes on has a partial file.
  const std::string part = put(meta + "x.incomplete", "");
  EXPECT_FALSE(import_local_directory(folder_ / "m", "", Gone::Listed).ok());
  std::filesystem::remove(part);
  const std::string one =
      put(meta + "w-00001-of-00002.safetensors.metadata", kCommit + "\n" + sha256_hex(shard) + "\n1\n");
  const auto half = import_local_directory(folder_ / "m", "", Gone::Listed);
  ASSERT_FALSE(half.ok());
  EXPECT_NE(half.error().message().find("1 of 2 shards were fetched"), std::string::npos)
      << half.error().message();
  std::filesystem::remove(one);
  std::filesystem::create_symlink("loop.metadata", folder_ / (meta + "loop.metadata"));
  EXPECT_TRUE(import_local_directory(folder_ / "m", "", Gone::Listed).ok())
      << "a link is not what the downloader writes";

  // Files of two revisions are no model.
  put(meta + "model.safetensors.metadata",
      std::string(40, 'a') + "\n" + sha256_hex(shard) + "\n1754000000.5\n");
  const auto mixed = import_local_directory(folder_ / "m", "", Gone::Listed);
  ASSERT_FALSE(mixed.ok());
  EXPECT_NE(mixed.error().message().find("fetch one revision whole"), std::string::npos);
  put(meta + "model.safetensors.metadata", "one line");
  EXPECT_FALSE(import_local_directory(folder_ / "m", "", Gone::Listed).ok());
  EXPECT_FALSE(import_local_directory(folder_ / "nothing", "", Gone::Listed).ok());
}

// A manifest holds every node to what it says: of a download that failed none is made.
TEST_F(PinTest, WhatIsSurelyNotTheFileIsNotPinned) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') + "\nsize 5\n";
  const std::tuple<const char*, std::string, Code> bad[] = {
      {"tokenizer.json", "<!DOCTYPE html><html>504</html>", Code::HTML_BODY},
      {"tokenizer.model", "<html>504</html>", Code::HTML_BODY},
      {"config.json", "{\"error\":\"Repository not found\"}", Code::JSON_BODY},
      {"config.json", pointer, Code::LFS_POINTER},
      {"tokenizer.model", pointer, Code::LFS_POINTER},
      {"config.json", std::string(5000, '\0'), Code::ZERO_FILLED},
      {"vocab.json", std::string(20, '\0'), Code::ZERO_FILLED},
      {"config.json", "", Code::PARTIAL}};
  for (const auto& [name, content, code] : bad) {
    std::filesystem::remove_all(folder_ / "m");
    put("m/model.safetensors", one_tensor("a"));
    put(std::string("m/") + name, content);
    const auto pinned = pin(folder_ / "m");
    ASSERT_TRUE(pinned.ok()) << pinned.error().message();
    ASSERT_EQ(pinned->findings.size(), 1u) << name << " " << content.substr(0, 40);
    EXPECT_EQ(pinned->findings[0].code, code) << pinned->findings[0].message;
    EXPECT_EQ(pinned->findings[0].subject, name);
  }
  std::filesystem::remove_all(folder_ / "m");
  put("m/model.safetensors", one_tensor("a"));
  put("m/chat_template.jinja", "{% for message in messages %}");
  put("m/README.md", "<html>a page by right</html>");
  put("m/config.json", "{}");
  put("m/empty.txt", "");
  EXPECT_TRUE(pin(folder_ / "m")->findings.empty());
}

TEST_F(PinTest, AGapInTheShardsNumbersIsNamed) {
  for (const char* there : {"00001-of-00003", "00003-of-00003"})
    put(std::string("m/model-") + there + ".safetensors", one_tensor(there));
  const auto pinned = pin(folder_ / "m");
  ASSERT_EQ(pinned->findings.size(), 1u);
  EXPECT_EQ(pinned->findings[0].code, Code::MISSING_SHARD);
  EXPECT_EQ(pinned->findings[0].subject, "model-00002-of-00003.safetensors");
  put("m/model-00002-of-00003.safetensors", one_tensor("x"));
  EXPECT_TRUE(pin(folder_ / "m")->findings.empty());
  for (const char* there : {"000000-of-000002", "000001-of-000002"})
    put(std::string("n/w-") + there + ".safetensors", one_tensor(there));
  EXPECT_TRUE(pin(folder_ / "n")->findings.empty()) << "numbers from 0";
}

// What `hf download --local-dir` has left since it lists the revision first.
TEST_F(PinTest, TheTreeOfALocalDirectoryTellsWhatIsMissing) {
  const std::string shard = one_tensor("a"), meta = "m/.cache/huggingface/download/";
  const std::string git = "ce013625030ba8dba906f756967f9e9ca394464a";  // of "hello\n"
  put("m/model.safetensors", shard);
  put(meta + "model.safetensors.metadata", kCommit + "\n" + sha256_hex(shard) + "\n1\n");
  const auto tree = [&](const std::string& sha256) {
    put("m/.cache/huggingface/trees/" + kCommit + ".json",
        R"({"format_version":1,"files":{"model.safetensors":{"size":130,"blob_id":"x","lfs_sha256":")" +
            sha256 + R"(","lfs_size":)" + std::to_string(shard.size()) +
            R"(},"config.json":{"size":6,"blob_id":")" + git +
            R"("},"original/a.safetensors":{"size":6,"blob_id":")" + git +
            R"("},"notes.md":{"size":6,"blob_id":")" + git + R"("}}})");
  };
  tree(sha256_hex(shard));
  put(meta + "x.incomplete", "");
  put("m/model.safetensors", shard.substr(0, 70));
  const auto whole = import_local_directory(folder_ / "m", "org/name", Gone::Refused);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  EXPECT_EQ(whole->files.size(), 2u) << "what was left out on purpose is no loader's";
  EXPECT_EQ(whole->files.at("model.safetensors").bytes.count, shard.size()) << "not what lies there";
  put("m/model.safetensors", shard);
  const auto proof = prove(folder_ / "m", *whole);
  EXPECT_TRUE(std::any_of(proof.findings.begin(), proof.findings.end(), [](const Finding& one) {
    return one.code == Code::MISSING_FILE && one.subject == "config.json";
  }));
  tree(std::string(64, 'a'));
  const auto other = import_local_directory(folder_ / "m", "org/name", Gone::Listed);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message().find("model.safetensors was fetched as another file"), std::string::npos);
}

TEST_F(PinTest, AFileThatWasCutOffSinceItWasFetchedIsNotForOthers) {
  const std::string shard = one_tensor("a"), meta = "m/.cache/huggingface/download/";
  put("m/model.safetensors", shard);
  put("m/config.json", "hello\n");
  put(meta + "model.safetensors.metadata", kCommit + "\n" + sha256_hex(shard) + "\n1\n");
  put(meta + "config.json.metadata", kCommit + "\nce013625030ba8dba906f756967f9e9ca394464a\n1\n");
  EXPECT_TRUE(import_local_directory(folder_ / "m", "", Gone::Refused).ok());
  put("m/config.json", "hell");
  EXPECT_FALSE(import_local_directory(folder_ / "m", "", Gone::Refused).ok());
  put("m/config.json", "hello\n");
  put("m/model.safetensors", shard.substr(0, shard.size() - 2));
  const auto cut = import_local_directory(folder_ / "m", "", Gone::Refused);
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message().find("2 fewer"), std::string::npos) << cut.error().message();
}

TEST_F(PinTest, NamesThatNoManifestCanHoldAreSaid) {
  put("m/a\xff.json", "{}");
  const auto pinned = pin(folder_ / "m");
  ASSERT_FALSE(pinned.ok());
  EXPECT_NE(pinned.error().message().find("rename"), std::string::npos) << pinned.error().message();
}

}  // namespace
}  // namespace troika::model
