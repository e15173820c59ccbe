#include "agent/model/manifest.hpp"

#include "tests/unit/model/tree.hpp"

namespace troika::model {
namespace {

const std::string kDigest(64, 'a');

std::string manifest(const std::string& files, const std::string& format = "1") {
  return "{\"format\":" + format + ",\"model\":\"m\",\"revision\":\"r\",\"files\":{" + files + "}}";
}

TEST(ManifestText, ReadsBackWhatItWrites) {
  Manifest m{"org/model", "abc", {}};
  m.files["x.safetensors"] = {Bytes{5}, kDigest, ""};
  m.files["sub/config.json"] = {Bytes{0}, "", std::string(40, 'b')};
  m.allowed = {"a.py", "b.gguf"};
  const auto read = parse_manifest(write_manifest(m), "m.json");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, m);
}

TEST(ManifestText, HasTheSameDigestForTheSameContent) {
  const auto one = parse_manifest(
      manifest("\"a\":{\"bytes\":1,\"sha256\":\"" + kDigest + "\"},\"b\":{\"bytes\":2,\"sha256\":\"" +
               kDigest + "\",\"blocks\":{\"bytes\":65536,\"sha256\":[\"" + kDigest + "\"]}}"),
      "x");
  const auto other = parse_manifest("{ \"files\": {\"b\": {\"sha256\":\"" + kDigest +
                                        "\", \"bytes\":2}, \"a\":{\"sha256\":\"" + kDigest +
                                        "\",\"bytes\":1}},\n\"revision\":\"r\",\"model\":\"m\",\"format\":1}",
                                    "y");
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(manifest_digest(*one), manifest_digest(*other));
  Manifest changed = *one;
  changed.files["a"].bytes = Bytes{3};
  EXPECT_NE(manifest_digest(*one), manifest_digest(changed));
}

TEST(ManifestText, RefusesSizesWhoseSumCannotBe) {
  const auto sizes = [](const std::string& a, const std::string& b) {
    const std::string rest = ",\"sha256\":\"" + kDigest + "\"}";
    return parse_manifest(manifest("\"a\":{\"bytes\":" + a + rest + ",\"b\":{\"bytes\":" + b + rest),
                          "m.json");
  };
  EXPECT_TRUE(sizes("576460752303423488", "576460752303423488").ok());  // 2^60 in all
  for (const auto& [a, b] : {std::pair{"576460752303423488", "576460752303423489"},
                             {"0", "1152921504606846977"},
                             {"1", "18446744073709551615"}}) {
    const auto read = sizes(a, b);
    ASSERT_FALSE(read.ok()) << a << " " << b;
    EXPECT_NE(read.error().message().find("b: with its " + std::string(b)), std::string::npos)
        << read.error().message();
  }
}

// Mode 5's allow-list. What is allowed is part of what all nodes must agree on.
TEST(ManifestText, AllowsFilesByName) {
  const auto with = [](const std::string& allowed) {
    return parse_manifest(
        "{\"format\":1,\"files\":{\"a\":{\"bytes\":1,\"sha256\":\"" + kDigest + "\"}}" + allowed + "}",
        "m.json");
  };
  const auto none = with(""), some = with(R"(,"allowed":["y.py","x.gguf"])"),
             turned = with(R"(,"allowed":["x.gguf","y.py"])"), empty = with(R"(,"allowed":[])");
  ASSERT_TRUE(none.ok() && some.ok() && turned.ok() && empty.ok());
  EXPECT_EQ(some->allowed, (std::vector<std::string>{"x.gguf", "y.py"}));
  EXPECT_EQ(manifest_digest(*some), manifest_digest(*turned));
  EXPECT_EQ(manifest_digest(*none), manifest_digest(*empty));
  EXPECT_NE(manifest_digest(*none), manifest_digest(*some));
  for (const char* wrong : {R"("x")", R"([5])", R"(["a"])", R"(["x","x"])", R"([""])", R"(["../x"])",
                            R"(["sub/x"])", R"(["."])", R"(["x\n"])"}) {
    const auto read = with(std::string(",\"allowed\":") + wrong);
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_NE(read.error().message().find("allowed"), std::string::npos) << read.error().message();
  }
}

TEST(ManifestText, SaysWhatIsWrong) {
  const auto reason = [](const std::string& text) {
    const auto read = parse_manifest(text, "m.json");
    EXPECT_FALSE(read.ok()) << text;
    return read.ok() ? "" : read.error().message();
  };
  const std::string good = "{\"bytes\":1,\"sha256\":\"" + kDigest + "\"}";
  EXPECT_NE(reason("").find("not JSON"), std::string::npos);
  EXPECT_NE(reason("[]").find("object"), std::string::npos);
  EXPECT_NE(reason(manifest("\"a\":" + good, "2")).find("format"), std::string::npos);
  EXPECT_NE(reason(manifest("")).find("no file"), std::string::npos);
  EXPECT_NE(reason(manifest("\"a\":" + good + ",\"a\":" + good)).find("twice"), std::string::npos);
  EXPECT_NE(reason(manifest("\"a\":{\"bytes\":-1,\"sha256\":\"" + kDigest + "\"}")).find("bytes"),
            std::string::npos);
  EXPECT_NE(reason(manifest("\"a\":{\"bytes\":1}")).find("neither"), std::string::npos);
  EXPECT_NE(reason(manifest("\"a\":{\"bytes\":1,\"sha256\":\"ABC\"}")).find("64"), std::string::npos);
  const auto blocks = [&](const std::string& value) {
    return reason(
        manifest("\"a\":{\"bytes\":70000,\"sha256\":\"" + kDigest + "\",\"blocks\":" + value + "}"));
  };
  for (const std::string value :
       {"5", "{}", "{\"bytes\":65536}", "{\"bytes\":65536,\"sha256\":[5,5]}", "{\"bytes\":1,\"sha256\":[]}",
        "{\"bytes\":65536,\"sha256\":[\"ab\"]}", "{\"bytes\":65536,\"sha256\":[\"ab\",\"cd\"]}"})
    EXPECT_NE(blocks(value).find("blocks"), std::string::npos) << value;
  EXPECT_NE(reason(manifest("\"a\\u0001\":" + good)).find("control"), std::string::npos);
  for (const char* name : {"/etc/passwd", "../x", "a/../../x", "a//b", ".", "a/./b", ""})
    EXPECT_NE(reason(manifest("\"" + std::string(name) + "\":" + good)).find("file name"), std::string::npos)
        << name;
}

TEST_F(TreeTest, AManifestThatLeadsOutOfTheDirectoryIsRefused) {
  manifest_.files["../secret"] = {Bytes{1}, kDigest, ""};
  const Finding f = only_error();
  EXPECT_EQ(f.code, Code::MANIFEST_INVALID);
}

}  // namespace
}  // namespace troika::model
