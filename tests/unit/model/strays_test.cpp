// Mode 5: files beside the right ones.
#include "agent/model/strays.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/model/pin.hpp"
#include "tests/unit/model/tree.hpp"

namespace troika::model {
namespace {

class StraysTest : public TreeTest {
 protected:
  void SetUp() override { put("model-00001-of-00001.safetensors", a01()); }
  void TearDown() override {
    if (away_) {
      ASSERT_EQ(::seteuid(0), 0);
    }
    ::chmod(path("").c_str(), 0755);
  }

  // As a user to whom the permissions apply. False: it cannot be another one, and permissions do not bind it.
  bool become_another() {
    if (::geteuid() != 0) return true;
    away_ = ::seteuid(65533) == 0;
    return away_;
  }

 private:
  bool away_ = false;
};

TEST_F(StraysTest, WhatALoaderWouldTakeIsAnErrorUnlessAllowedByName) {
  for (const char* name : {"consolidated.safetensors", "adapter_config.json", "modeling.py", "old.gguf"}) {
    write(name, a01());
    const Finding f = only_error();
    EXPECT_EQ(f.code, Code::EXTRA_FILE);
    EXPECT_EQ(f.subject, name);
    manifest_.allowed = {name};
    EXPECT_TRUE(prove().findings.empty()) << name;
    manifest_.allowed.clear();
    ::unlink(path(name).c_str());
  }
}

TEST_F(StraysTest, OneNameAllowsNoOther) {
  write("a.py", "");
  write("b.py", "");
  manifest_.allowed = {"a.py"};
  EXPECT_EQ(only_error().subject, "b.py");
}

// What is allowed besides is not pinned, so it may change.
TEST_F(StraysTest, PinnedWithAnAllowedFile) {
  write("notes.py", "1");
  PinPlan plan{folder_.path(), "org/model", std::string(40, 'a')};
  plan.allowed = {"notes.py", "absent.py"};
  const std::atomic<bool> cancel{false};
  const auto pinned = pin_directory(
      plan, [](const PinProgress&) {}, cancel);
  ASSERT_TRUE(pinned.ok());
  manifest_ = pinned->manifest;
  EXPECT_EQ(manifest_.allowed, (std::vector<std::string>{"absent.py", "notes.py"}));
  EXPECT_EQ(manifest_.files.count("notes.py"), 0u);
  write("notes.py", "2");
  EXPECT_TRUE(prove().findings.empty());
}

TEST_F(StraysTest, ANameThatCannotBeAllowedIsRefusedBeforeAnythingIsRead) {
  for (const char* wrong : {"../notes.py", "sub/notes.py", "/notes.py", "", "."}) {
    PinPlan plan{folder_.path(), "org/model", std::string(40, 'a')};
    plan.allowed = {"a.py", wrong};
    const std::atomic<bool> cancel{false};
    const auto pinned = pin_directory(
        plan, [&](const PinProgress&) { ADD_FAILURE() << "files were read"; }, cancel);
    ASSERT_FALSE(pinned.ok()) << wrong;
    EXPECT_NE(pinned.error().message().find("allowed \"" + std::string(wrong) + "\""), std::string::npos)
        << pinned.error().message();
  }
}

// Files there can still be opened by name: without the list nobody knows what else a loader finds.
TEST_F(StraysTest, ADirectoryThatCannotBeListedIsNotSaidToHoldNothingElse) {
  write("consolidated.safetensors", a01());
  ASSERT_EQ(::chmod(path("").c_str(), 0711), 0);
  // Root without CAP_SETUID can neither be bound by permissions nor become a user who is.
  if (!become_another()) GTEST_SKIP() << "permissions do not bind this user";
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::UNREADABLE);
  EXPECT_NE(f.message.find("cannot be listed"), std::string::npos) << f.message;
}

TEST_F(StraysTest, AFolderOfDownloadsThatCannotBeListedIsSaidSo) {
  for (const char* folder : {".cache", ".cache/huggingface"})
    ASSERT_EQ(::mkdir(path(folder).c_str(), 0755), 0);
  ASSERT_EQ(::symlink("download", path(".cache/huggingface/download").c_str()), 0);  // of itself
  const ModelProof proof = prove();
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::CANNOT_TELL);
  EXPECT_EQ(proof.findings[0].subject, ".cache/huggingface/download");
}

}  // namespace
}  // namespace troika::model
