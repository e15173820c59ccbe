// The cases from the field, by their numbers. Modes 1 to 8.
#include "tests/unit/model/tree.hpp"

namespace troika::model {
namespace {

const std::string kShard = "model-00001-of-00001.safetensors";

TEST_F(TreeTest, A01_ValidMinimalFile) {
  put(kShard, a01());
  ASSERT_EQ(a01().size(), 65u);
  const ModelProof proof = prove();
  EXPECT_EQ(verdict_of(proof.findings), Verdict::Ok);
  EXPECT_TRUE(proof.findings.empty());
  EXPECT_EQ(proof.tensors, 1u);
  EXPECT_EQ(proof.files, 1u);
  EXPECT_EQ(proof.shards, 1u);
  EXPECT_EQ(proof.bytes.count, 65u);
  ASSERT_EQ(proof.list.size(), 1u);
  EXPECT_EQ(proof.list[0].status, "ok");
  EXPECT_EQ(proof.list[0].sha256, sha256_hex(a01()));
}

TEST_F(TreeTest, A02_LfsPointer) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
      "\nsize 3600000000\n";
  ASSERT_EQ(pointer.size(), 135u);
  put_wrong(kShard, pointer, a01());
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::LFS_POINTER);
  EXPECT_EQ(f.subject, kShard);
  EXPECT_EQ(evidence(f, "oid"), std::string(64, 'a'));
  EXPECT_EQ(evidence(f, "size"), "3600000000");
  EXPECT_NE(f.remedy.find("lfs"), std::string::npos);
}

TEST_F(TreeTest, A03_HtmlErrorPage) {
  put_wrong(kShard, "<!DOCTYPE html><html><head><title>504</title></head></html>", a01());
  EXPECT_EQ(only_error().code, Code::HTML_BODY);
}

TEST_F(TreeTest, A04_JsonErrorBody) {
  put_wrong(kShard, R"({"error":"Repository not found"})", a01());
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::JSON_BODY);
  EXPECT_NE(f.message.find("Repository not found"), std::string::npos);
}

TEST_F(TreeTest, A04_OtherErrorBodies) {
  for (const char* body : {"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>",
                           "<Error><Code>NoSuchKey</Code></Error>", "\xef\xbb\xbf<?xml version=\"1.0\"?>"}) {
    put_wrong(kShard, body, a01());
    EXPECT_EQ(only_error().code, Code::XML_BODY) << body;
  }
  for (const char* body : {"\n  <HTML lang=en>", "<head><title>Sign in</title>", "<!doctype HTML>"}) {
    put_wrong(kShard, body, a01());
    EXPECT_EQ(only_error().code, Code::HTML_BODY) << body;
  }
  // The right content of these files is JSON: only an error in its place is one.
  put(kShard, a01());
  put_wrong("config.json", "{\"error\": \"gated repository\"}", "{\"architectures\":[\"X\"]}");
  EXPECT_EQ(only_error().code, Code::JSON_BODY);
  put_wrong("config.json", "{\"architectures\":[]}", "{\"architectures\":[\"X\"]}");
  EXPECT_EQ(only_error().code, Code::PARTIAL);
}

// Other bodies under a shard's name.
TEST_F(TreeTest, A03_AnErrorPageInTwoByteCharacters) {
  const std::string page = "<html><head><title>504</title>";
  for (const bool little : {true, false}) {
    for (const bool mark : {true, false}) {
      std::string wide = mark ? (little ? "\xff\xfe" : "\xfe\xff") : "";
      for (const char c : page)
        wide += little ? std::string{c, '\0'} : std::string{'\0', c};
      put_wrong(kShard, wide, a01());
      EXPECT_EQ(only_error().code, Code::HTML_BODY) << little << mark;
    }
  }
  put_wrong(kShard, "<!-- proxy --><html></html>", a01());
  EXPECT_EQ(only_error().code, Code::HTML_BODY);
}

TEST_F(TreeTest, A04_WhatElseABodyLooksLikeIsSaid) {
  const std::pair<std::string, std::string> bodies[] = {
      {"Entry not found, sorry", "text: Entry not found, sorry"},
      {std::string("\x1f\x8b\x08\x00 and so on", 14), "gzip"},
      {"PK\x03\x04 and much more", "ZIP"}};
  for (const auto& [body, look] : bodies) {
    put_wrong(kShard, body, a01());
    const Finding f = only_error();
    EXPECT_EQ(f.code, Code::CORRUPT_HEADER);
    EXPECT_NE(f.message.find(look), std::string::npos) << f.message;
    EXPECT_NE(f.remedy.find("token"), std::string::npos) << f.remedy;
  }
}

TEST_F(TreeTest, A02_APointerOfBeforeTheNameAndOneWithoutASize) {
  const std::string oid = "oid sha256:" + std::string(64, 'a') + "\n";
  put_wrong(kShard, "version https://hawser.github.com/spec/v1\n" + oid + "size 7\n", a01());
  EXPECT_EQ(evidence(only_error(), "size"), "7");
  put_wrong(kShard, "version https://git-lfs.github.com/spec/v1\n" + oid + "size 99999999999999999999999\n",
            a01());
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::LFS_POINTER);
  EXPECT_EQ(evidence(f, "size"), "absent");
  EXPECT_EQ(f.message.find(" of 0 bytes"), std::string::npos) << f.message;
}

TEST_F(TreeTest, A05_TruncatedTail) {
  put_wrong(kShard, a01().substr(0, 63), a01());
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::PARTIAL);
  EXPECT_EQ(evidence(f, "short_by"), "2");
}

TEST_F(TreeTest, A05_TruncatedTailThatTheManifestAgreesWith) {
  put(kShard, a01().substr(0, 63));
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::PARTIAL);
  EXPECT_EQ(evidence(f, "short_by"), "2");
}

TEST_F(TreeTest, A05_NothingArrived) {
  for (const std::size_t size : {0u, 4u}) {
    put_wrong(kShard, a01().substr(0, size), a01());
    EXPECT_EQ(only_error().code, Code::PARTIAL) << size;
  }
}

TEST_F(TreeTest, A06_OneByteTooLong) {
  put_wrong(kShard, a01() + "\x05", a01());
  EXPECT_EQ(only_error().code, Code::CORRUPT_TRAILING);
  put(kShard, a01() + "\x05");
  EXPECT_EQ(only_error().code, Code::CORRUPT_TRAILING);
}

// A header that is wrong, in a file of which the manifest says that it is right: the digest would hide it.
class HeaderCases : public TreeTest {
 protected:
  void expect(const std::string& header, const std::string& data, const std::string& rule,
              const std::string& tensor) {
    put(kShard, shard_of(header, data));
    const Finding f = only_error();
    EXPECT_EQ(f.code, Code::CORRUPT_HEADER) << header;
    EXPECT_EQ(evidence(f, "rule"), rule) << header << ": " << f.message;
    EXPECT_EQ(evidence(f, "tensor"), tensor) << header;
  }
};

TEST_F(HeaderCases, A07_HeaderLengthPastTheEnd) {
  put(kShard, little_endian(5000) + kA01Header);
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::CORRUPT_HEADER);
  EXPECT_EQ(evidence(f, "rule"), "InvalidHeaderLength");
}

TEST_F(HeaderCases, HeaderLengthBeyondTheLimitAndTooSmallAFile) {
  put(kShard, little_endian(100'000'001) + kA01Header);
  EXPECT_EQ(evidence(only_error(), "rule"), "HeaderTooLarge");
  put(kShard, little_endian(UINT64_MAX) + kA01Header);
  EXPECT_EQ(evidence(only_error(), "rule"), "HeaderTooLarge");
  put(kShard, "\x01\x02\x03");
  EXPECT_EQ(evidence(only_error(), "rule"), "HeaderTooSmall");
  put(kShard, little_endian(0));
  EXPECT_EQ(evidence(only_error(), "rule"), "InvalidHeaderDeserialization");
}

TEST_F(HeaderCases, A09_ZeroFilled) {
  put_wrong(kShard, std::string(64, '\0'), a01());
  EXPECT_EQ(only_error().code, Code::ZERO_FILLED);
  put(kShard, std::string(64, '\0'));
  EXPECT_EQ(only_error().code, Code::ZERO_FILLED);
}

TEST_F(HeaderCases, A11_ShapeDoesNotMatchBytes) {
  expect(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}})", "data", "TensorInvalidInfo", "a");
}

TEST_F(HeaderCases, A12_OddNumberOfFourBitValues) {
  expect(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "da", "MisalignedSlice", "a");
}

TEST_F(HeaderCases, HolesAndOverlaps) {
  const auto two = [](const std::string& first, const std::string& second) {
    return "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + first +
           "},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + second + "}}";
  };
  expect(two("[0,2]", "[3,5]"), "12345", "InvalidOffset", "b");
  expect(two("[0,2]", "[1,3]"), "123", "InvalidOffset", "b");
  expect(two("[1,3]", "[3,5]"), "12345", "InvalidOffset", "a");
  expect(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,1]}})",
      "12", "InvalidOffset", "b");
  // In any order of the text, with spaces behind, a scalar, and tensors without bytes: good.
  put(kShard,
      shard_of(
          R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
          R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},"one":{"dtype":"BF16","shape":[],"data_offsets":[4,6]},)"
          R"("__metadata__":{"format":"pt"}}   )",
          "123456"));
  EXPECT_TRUE(prove().findings.empty());
}

TEST_F(HeaderCases, RulesOfTheTextThatNoLibraryEnforces) {
  expect(" " + kA01Header, "data", "InvalidHeaderStart", "");
  expect(kA01Header + "\n", "data", "InvalidHeaderDeserialization", "");
  expect(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
      "data", "DuplicateKey", "a");
  expect(R"({"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "data", "DuplicateKey",
         "a");
  expect(R"({"__metadata__":{"x":"1","x":"2"}})", "", "DuplicateKey", "x");
}

TEST_F(HeaderCases, FieldsOfAnotherForm) {
  const auto bad = [&](const std::string& tensor) {
    expect("{\"a\":" + tensor + "}", "data", "InvalidHeaderDeserialization", "a");
  };
  bad(R"({"shape":[4],"data_offsets":[0,4]})");
  bad(R"({"dtype":"U8","data_offsets":[0,4]})");
  bad(R"({"dtype":"U8","shape":[4]})");
  bad(R"({"dtype":"U9","shape":[4],"data_offsets":[0,4]})");
  bad(R"({"dtype":8,"shape":[4],"data_offsets":[0,4]})");
  bad(R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})");
  bad(R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})");
  bad(R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})");
  bad(R"({"dtype":"U8","shape":[[4]],"data_offsets":[0,4]})");
  bad(R"({"dtype":"U8","shape":[4],"data_offsets":[0]})");
  bad(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,8]})");
  bad(R"({"dtype":"U8","shape":[4],"data_offsets":[0,99999999999999999999]})");
  bad(R"({"dtype":"U8","shape":[4],"data_offsets":[0,null]})");
  bad("[1]");
  bad("7");
  expect(R"({"__metadata__":{"x":1}})", "", "InvalidHeaderDeserialization", "");
  expect(R"({"__metadata__":"x"})", "", "InvalidHeaderDeserialization", "");
  expect("{\"a\xff\":{}}", "", "InvalidHeaderUtf8", "");
  expect("{\"a\":{}", "", "InvalidHeaderDeserialization", "a");
  expect(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,2],"data_offsets":[0,4]}})", "data",
         "ValidationOverflow", "a");
  // A field that a later version of the format adds is passed over.
  put(kShard,
      shard_of(
          R"({"a":{"dtype":"U8","shape":[4],"new":{"x":[1,{"y":2}]},"data_offsets":[0,4],"more":[1,[2]]}})",
          "data"));
  EXPECT_TRUE(prove().findings.empty());
}

TEST_F(TreeTest, A14_RightSizeWrongContent) {
  put_wrong(kShard, shard_of(kA01Header, std::string("\x01\x02\x03\x05", 4)), a01());
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::HASH_MISMATCH);
  EXPECT_EQ(evidence(f, "expected"), sha256_hex(a01()));
}

class ShardSet : public TreeTest {
 protected:
  static std::string name(int i, int of) {
    char text[64];
    std::snprintf(text, sizeof text, "model-%05d-of-%05d.safetensors", i, of);
    return text;
  }
  // Shards 1 to `count` with a tensor each; `write` and `list` say where.
  void shards(int count, int of, bool on_disk, bool in_manifest, const std::string& data = "data") {
    for (int i = 1; i <= count; ++i) {
      const std::string content = one_tensor("t" + std::to_string(i), data + std::to_string(i));
      if (on_disk) write(name(i, of), content);
      if (in_manifest) list(name(i, of), content);
    }
  }
  std::string index(int count, int of) const {
    std::string map;
    for (int i = 1; i <= count; ++i)
      map += std::string(i == 1 ? "" : ",") + "\"t" + std::to_string(i) + "\":\"" + name(i, of) + "\"";
    return "{\"metadata\":{},\"weight_map\":{" + map + "}}";
  }
};

TEST_F(ShardSet, A15_IndexNamesAShardThatIsNotThere) {
  shards(46, 47, true, true);
  put("model.safetensors.index.json", index(47, 47));
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::MISSING_SHARD);
  EXPECT_EQ(f.subject, name(47, 47));
  EXPECT_EQ(evidence(f, "first_tensor"), "t47");
  // The same with the shard in the manifest: one finding, not two.
  list(name(47, 47), one_tensor("t47"));
  const Finding again = only_error();
  EXPECT_EQ(again.code, Code::MISSING_SHARD);
  EXPECT_EQ(evidence(again, "first_tensor"), "t47");
}

TEST_F(ShardSet, A17_OtherNumberOfShards) {
  shards(46, 46, false, true);
  shards(48, 48, true, false);
  EXPECT_EQ(only_error().code, Code::REVISION_MISMATCH);
}

TEST_F(ShardSet, A18_SameNumberOtherModel) {
  shards(46, 46, false, true, "data of some length");
  shards(46, 46, true, false, "shorter");
  put("config.json", "{}");
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::REVISION_MISMATCH);
  EXPECT_NE(f.message.find("46 of 46"), std::string::npos);
  EXPECT_EQ(f.subject, "org/model@0123456789012345678901234567890123456789");
}

TEST_F(ShardSet, IndexAndHeadersMustAgree) {
  shards(3, 3, true, true);
  put("model.safetensors.index.json", R"({"weight_map":{"t1":")" + name(1, 3) + R"(","t2":")" + name(3, 3) +
                                          R"(","t3":")" + name(3, 3) + R"("}})");
  EXPECT_EQ(only_error().code, Code::INDEX_HEADER_DISAGREE);  // t2 is in shard 2
  put("model.safetensors.index.json", index(2, 3));
  Finding f = only_error();  // t3 is in no line of the index
  EXPECT_EQ(f.code, Code::INDEX_HEADER_DISAGREE);
  EXPECT_EQ(f.subject, "t3");
  for (const char* text :
       {"{", "[]", R"({"weight_map":{"a":"../x.safetensors"}})", R"({"weight_map":{"a":7}})",
        R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})"}) {
    put("model.safetensors.index.json", text);
    EXPECT_EQ(only_error().code, Code::INDEX_HEADER_DISAGREE) << text;
  }
}

TEST_F(ShardSet, ATensorInTwoShards) {
  put(name(1, 2), one_tensor("t1"));
  put(name(2, 2), one_tensor("t1"));
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::DUPLICATE_TENSOR);
  EXPECT_EQ(f.subject, "t1");
}

// Some models are published twice in one tree, the other format in a folder with its own index.
TEST_F(ShardSet, AnIndexIsOfItsOwnFolder) {
  shards(2, 2, true, true);
  put("model.safetensors.index.json", index(2, 2));
  ASSERT_EQ(::mkdir(path("original").c_str(), 0755), 0);
  for (int i = 1; i <= 2; ++i)
    put("original/" + name(i, 2), one_tensor("t" + std::to_string(i)));
  put("original/model.safetensors.index.json", index(2, 2));
  EXPECT_TRUE(prove().findings.empty());
  put("original/model.safetensors.index.json", index(3, 3));
  const ModelProof proof = prove();
  bool named = false;
  for (const Finding& one : proof.findings) {
    EXPECT_TRUE(one.subject.starts_with("original/") || evidence(one, "shard").starts_with("original/"))
        << one.message;
    named = named || (one.code == Code::MISSING_SHARD && one.subject == "original/" + name(3, 3));
  }
  EXPECT_TRUE(named);
}

// The cause is the file's own finding, not what its bytes make of the index.
TEST_F(ShardSet, AnIndexOfOtherBytesIsNotCompared) {
  shards(2, 2, true, true);
  put_wrong("model.safetensors.index.json", "<!DOCTYPE html><html>504</html>", index(2, 2));
  EXPECT_EQ(only_error().code, Code::HTML_BODY);
  put_wrong("model.safetensors.index.json", index(2, 2).substr(0, 40), index(2, 2));
  EXPECT_EQ(only_error().code, Code::PARTIAL);
}

TEST_F(ShardSet, AStaleTotalIsNoFault) {
  shards(1, 1, true, true);
  put("model.safetensors.index.json",
      R"({"metadata":{"total_size":1},"weight_map":{"t1":")" + name(1, 1) + R"("}})");
  const ModelProof proof = prove();
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::STALE_TOTAL_SIZE);
  EXPECT_EQ(verdict_of(proof.findings), Verdict::Ok);
}

// Six digits: Kimi K3's shards.
TEST_F(ShardSet, NamesHaveNoFixedNumberOfDigits) {
  put("model-000001-of-000096.safetensors", one_tensor("t1"));
  EXPECT_TRUE(prove().findings.empty());
}

TEST_F(TreeTest, A20_LinkIntoAFolderThatIsNotMounted) {
  list("model-00003-of-00046.safetensors", a01());
  ASSERT_EQ(::symlink("../../blobs/x", path("model-00003-of-00046.safetensors").c_str()), 0);
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::NOT_VISIBLE_IN_NAMESPACE);
  EXPECT_EQ(evidence(f, "target"), "../../blobs/x");
}

// The folder of blobs is there to see, and the blob is not in it.
TEST_F(TreeTest, ABlobThatIsLostIsMissing) {
  const std::string commit(40, 'a');
  ASSERT_TRUE(platform::make_directories(path("models--o--n/snapshots/" + commit)).ok());
  ASSERT_TRUE(platform::make_directories(path("models--o--n/blobs")).ok());
  const std::string snapshot = "models--o--n/snapshots/" + commit;
  list("model.safetensors", a01());
  ASSERT_EQ(::symlink("../../blobs/x", path(snapshot + "/model.safetensors").c_str()), 0);
  const std::atomic<bool> cancel{false};
  const auto proof = prove_model(
      {path(snapshot), manifest_, ""}, [](const ProofProgress&) {}, cancel);
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].code, Code::MISSING_SHARD);
  EXPECT_EQ(proof.findings[0].remedy, "fetch the file");
}

// A23, mode 9: room is needed only for what is missing.
class Room : public ShardSet {
 protected:
  ModelProof prove_with(Result<Bytes> free) {
    const std::atomic<bool> cancel{false};
    ProofPlan plan{folder_.path(), manifest_, "spark-1"};
    plan.free_space = [&](const std::string& directory) {
      EXPECT_EQ(directory, folder_.path());
      ++asked_;
      return free;
    };
    return prove_model(
        plan, [](const ProofProgress&) {}, cancel);
  }
  int asked_ = 0;
};

TEST_F(Room, A23_ANearlyFullDiskIsNoFaultOfAWholeModel) {
  shards(46, 46, true, true);
  for (const std::uint64_t free : {std::uint64_t{20'000'000'000}, std::uint64_t{0}}) {
    const ModelProof proof = prove_with(Bytes{free});
    EXPECT_EQ(verdict_of(proof.findings), Verdict::Ok);
    EXPECT_TRUE(proof.findings.empty());
    EXPECT_EQ(proof.shards, 46u);
    EXPECT_EQ(proof.missing, Bytes{0});
  }
  EXPECT_EQ(asked_, 0);
}

TEST_F(Room, WhatIsMissingMustFit) {
  shards(3, 3, true, true);
  const std::string lost = name(2, 3), cut = name(3, 3);
  const Bytes each = manifest_.files[lost].bytes;
  ASSERT_EQ(::unlink(path(lost).c_str()), 0);
  ASSERT_EQ(::truncate(path(cut).c_str(), 20), 0);
  const ModelProof little = prove_with(Bytes{10});
  EXPECT_EQ(little.missing, each + manifest_.files[cut].bytes);
  ASSERT_EQ(little.findings.size(), 3u);
  EXPECT_EQ(little.findings[2].code, Code::DISK_FULL);
  EXPECT_EQ(little.findings[2].node, "spark-1");
  EXPECT_EQ(evidence(little.findings[2], "bad_bytes"), "20");
  EXPECT_EQ(evidence(little.findings[2], "free_bytes"), "10");
  EXPECT_EQ(prove_with(Bytes{1000}).findings.size(), 2u);
  const ModelProof unknown = prove_with(Error{"look at", "x", "Input/output error"});
  ASSERT_EQ(unknown.findings.size(), 3u);
  EXPECT_EQ(std::count_if(unknown.findings.begin(), unknown.findings.end(),
                          [](const Finding& f) { return f.code == Code::CANNOT_TELL; }),
            1);
}

}  // namespace
}  // namespace troika::model
