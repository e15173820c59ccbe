#include <gtest/gtest.h>

#include <fstream>

#include "engine/safetensors/header.hpp"
#include "engine/safetensors/json_strict.hpp"
#include "tests/unit/engine/temporary_directory.hpp"

namespace troika::safetensors {
namespace {

// A file that ends where `data_bytes` of data end.
Result<Header> parse(const std::string& json, std::uint64_t data_bytes) {
  return parse_header(json, 8 + json.size() + data_bytes, "x.safetensors");
}

TEST(Header, ReadsTensorsScalarsEmptyOnesAndMetadata) {
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
      R"("s":{"dtype":"F32","shape":[],"data_offsets":[12,16]},)"
      R"("e":{"dtype":"F32","shape":[0,5],"data_offsets":[16,16]}}   )";
  const auto header = parse(json, 16);
  ASSERT_TRUE(header.ok()) << header.error().message();
  EXPECT_EQ(header->data_begin, 8 + json.size());
  EXPECT_EQ(header->tensors.at("a").shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(header->tensors.at("s").begin, header->data_begin + 12);
  EXPECT_EQ(header->metadata.at("format"), "pt");
}

TEST(Header, FourBitTensorsNeedWholeBytes) {
  EXPECT_TRUE(parse(R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", 2).ok());
  EXPECT_FALSE(parse(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2).ok());
}

struct Broken {
  const char* json;
  std::uint64_t data_bytes;
  const char* reason;
};

void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.reason;
}

class BrokenHeader : public testing::TestWithParam<Broken> {};

TEST_P(BrokenHeader, IsRefusedWithTheRule) {
  const auto header = parse(GetParam().json, GetParam().data_bytes);
  ASSERT_FALSE(header.ok());
  EXPECT_NE(header.error().message().find(GetParam().reason), std::string::npos) << header.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Rules, BrokenHeader,
    testing::Values(
        Broken{"", 0, "'{'"}, Broken{" {}", 0, "'{'"}, Broken{"[1]", 0, "'{'"},
        Broken{"{\"a\":", 0, "not JSON"}, Broken{R"({"a":5})", 0, "not an object"},
        Broken{
            R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})",
            2, "twice"},
        Broken{R"({"a":{"dtype":"BF16","dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", 2, "twice"},
        Broken{R"({"a":{"shape":[1],"data_offsets":[0,2]}})", 2, "lacks"},
        Broken{R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2],"x":1}})", 2, "unknown field"},
        Broken{R"({"a":{"dtype":"BF17","shape":[1],"data_offsets":[0,2]}})", 2, "unknown dtype"},
        Broken{R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,2]}})", 2, "dtype"},
        Broken{R"({"a":{"dtype":"BF16","shape":1,"data_offsets":[0,2]}})", 2, "shape"},
        Broken{R"({"a":{"dtype":"BF16","shape":[-1],"data_offsets":[0,2]}})", 2, "whole numbers"},
        Broken{R"({"a":{"dtype":"BF16","shape":[1.0],"data_offsets":[0,2]}})", 2, "whole numbers"},
        Broken{R"({"a":{"dtype":"BF16","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
               "overflows"},
        Broken{R"({"a":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0]}})", 0, "overflows"},
        Broken{R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0]}})", 2, "data_offsets"},
        Broken{R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[2,0]}})", 2, "do not match"},
        Broken{R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,2]}})", 2, "do not match"},
        Broken{R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[2,4]}})", 4, "hole"},
        Broken{
            R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[2,4]}})",
            4, "overlaps"},
        Broken{R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", 3, "end at"},
        Broken{R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", 1, "end at"},
        Broken{R"({"__metadata__":{"a":5}})", 0, "__metadata__"},
        Broken{R"({"__metadata__":[]})", 0, "__metadata__"}));

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST(HeaderFile, ShortFilesLongHeadersAndDirectoriesAreRefused) {
  const TemporaryDirectory directory;
  const auto path = directory.path() + "/a.safetensors";
  EXPECT_FALSE(read_header(path).ok());
  EXPECT_FALSE(read_header(directory.path()).ok());
  write(path, "1234567");
  EXPECT_FALSE(read_header(path).ok());
  write(path, std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}");
  EXPECT_NE(read_header(path).error().message().find("100000000"), std::string::npos);
  write(path, std::string("\x03\0\0\0\0\0\0\0", 8) + "{}");
  EXPECT_NE(read_header(path).error().message().find("longer than the file"), std::string::npos);
  write(path, std::string("\x02\0\0\0\0\0\0\0", 8) + "{}");
  EXPECT_TRUE(read_header(path).ok());
}

TEST(Index, RefusesPathsAndWrongForms) {
  const TemporaryDirectory directory;
  const auto path = directory.path() + "/model.safetensors.index.json";
  for (const char* bad : {"{}", "[]", R"({"weight_map":5})", R"({"weight_map":{"a":5}})",
                          R"({"weight_map":{"a":"../b"}})", R"({"weight_map":{"a":"/etc/x"}})",
                          R"({"weight_map":{"a":""}})", R"({"weight_map":{"a":"x","a":"y"}})"}) {
    write(path, bad);
    EXPECT_FALSE(read_index(directory.path()).ok()) << bad;
  }
  write(path, R"({"metadata":{"total_size":7},"weight_map":{"a":"x.safetensors"}})");
  const auto index = read_index(directory.path());
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->shard_of.at("a"), "x.safetensors");
  EXPECT_EQ(index->total_bytes, 7U);
}

TEST(StrictJson, RefusesDeepNesting) {
  EXPECT_FALSE(parse_strict(std::string(100, '[') + std::string(100, ']'), "x").ok());
  EXPECT_TRUE(parse_strict(std::string(30, '[') + std::string(30, ']'), "x").ok());
}

}  // namespace
}  // namespace troika::safetensors
