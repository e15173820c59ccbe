#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "engine/safetensors/files.hpp"
#include "engine/safetensors/json_reader.hpp"
#include "engine/safetensors/json_strict.hpp"
#include "tests/unit/engine/temporary_directory.hpp"

namespace troika::safetensors {
namespace {

using Shape = std::vector<std::uint64_t>;

const Tensor& tensor(const Header& header, std::string_view name) {
  for (const Tensor& one : header.tensors)
    if (one.name == name) return one;
  throw std::out_of_range(std::string(name));
}

TEST(Header, ReadsTensorsScalarsEmptyOnesAndMetadata) {
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
      R"("s":{"dtype":"F32","shape":[],"data_offsets":[12,16]},)"
      R"("e":{"dtype":"F32","shape":[0,5],"data_offsets":[16,16]}}   )";
  const Header header = parse_header(json);
  ASSERT_FALSE(header.fault) << header.fault->text();
  EXPECT_EQ(header.data_begin, 8 + json.size());
  EXPECT_EQ(header.file_bytes, 8 + json.size() + 16);
  EXPECT_EQ(tensor(header, "a").shape, (Shape{2, 3}));
  EXPECT_EQ(tensor(header, "a").dtype, Dtype::BF16);
  EXPECT_EQ(tensor(header, "s").begin, 12U);
  EXPECT_EQ(tensor(header, "e").end, 16U);
}

TEST(Header, NamesStayWhenItIsMoved) {
  std::string json = R"({"a\u00e9\ud83d\ude00\n":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})";
  Header header = parse_header(json);
  ASSERT_FALSE(header.fault) << header.fault->text();
  json.assign(json.size(), 'x');
  const Header moved = std::move(header);
  EXPECT_EQ(moved.tensors.at(0).name, "a\xc3\xa9\xf0\x9f\x98\x80\n");
}

struct Broken {
  const char* json;
  const char* rule;
};

void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.rule << " " << broken.json;
}

class BrokenHeader : public testing::TestWithParam<Broken> {};

TEST_P(BrokenHeader, IsRefusedWithTheRule) {
  const Header header = parse_header(GetParam().json);
  ASSERT_TRUE(header.fault);
  EXPECT_EQ(header.fault->rule, GetParam().rule) << header.fault->text();
}

constexpr const char* kMalformed = "InvalidHeaderDeserialization";
INSTANTIATE_TEST_SUITE_P(
    Rules, BrokenHeader,
    testing::Values(
        Broken{"", kMalformed}, Broken{" {}", "InvalidHeaderStart"}, Broken{"[1]", "InvalidHeaderStart"},
        Broken{"{\"a\":}", kMalformed}, Broken{R"({"a":5})", kMalformed}, Broken{"{}}", kMalformed},
        Broken{"{,}", kMalformed}, Broken{R"({"__metadata__":{},})", kMalformed},
        Broken{R"({"a":{"dtype":"BF16","shape":[1,],"data_offsets":[0,2]}})", kMalformed},
        Broken{R"({"a":{"dtype":"BF16","shape":[01],"data_offsets":[0,2]}})", kMalformed},
        Broken{R"({"a":{"dtype":"BF16","shape":[1e0],"data_offsets":[0,2]}})", kMalformed},
        Broken{R"({"a":{"dtype":"BF16","shape":[18446744073709551616],"data_offsets":[0,2]}})", kMalformed},
        Broken{R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2],"x":tru}})", kMalformed},
        Broken{R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2],"x":-}})", kMalformed},
        Broken{R"({"\ud800":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", kMalformed},
        Broken{R"({"\x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", kMalformed},
        Broken{"{\"a\tb\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", kMalformed},
        Broken{"{\"\xc0\xaf\":{}}", "InvalidHeaderUtf8"},
        Broken{"{\"\xed\xa0\x80\":{}}", "InvalidHeaderUtf8"},
        Broken{"{\"\xf4\x90\x80\x80\":{}}", "InvalidHeaderUtf8"},
        // The same key by another spelling.
        Broken{
            R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
            "DuplicateKey"},
        Broken{R"({"__metadata__":{},"__metadata__":{}})", "DuplicateKey"},
        // Offsets near 2^64: no sum may wrap around.
        Broken{
            R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}})",
            "ValidationOverflow"},
        Broken{
            R"({"a":{"dtype":"F4","shape":[18446744073709551614],"data_offsets":[0,18446744073709551615]}})",
            "ValidationOverflow"},
        Broken{R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0]}})",
               "InvalidOffset"},
        Broken{R"({"a":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0]}})",
               "ValidationOverflow"},
        Broken{R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[2,0]}})", "InvalidOffset"},
        Broken{R"({"a":{"dtype":"F6_E2M3","shape":[3],"data_offsets":[0,2]}})", "MisalignedSlice"},
        Broken{R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,2]}})", "TensorInvalidInfo"},
        Broken{R"({"__metadata__":{"a":5}})", kMalformed}, Broken{R"({"__metadata__":[]})", kMalformed}));

TEST(Header, ListsAndNestingHaveALimit) {
  const auto with = [](const std::string& shape, const std::string& more) {
    return parse_header(R"({"a":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1])" + more +
                        "}}");
  };
  std::string ones = "1";
  for (int i = 1; i < 64; ++i)
    ones += ",1";
  EXPECT_FALSE(with(ones, "").fault);
  EXPECT_EQ(with(ones + ",1", "").fault->rule, "TooManyDimensions");
  const auto nested = [](std::size_t depth) {
    return R"(,"x":)" + std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_FALSE(with("1", nested(62)).fault);
  EXPECT_EQ(with("1", nested(63)).fault->rule, kMalformed);
  EXPECT_EQ(with("1", nested(1'000'000)).fault->rule, kMalformed);
}

TEST(Names, AreKeptOnceAndFoundAgain) {
  NameTable table;
  EXPECT_FALSE(table.find("0"));
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < 10'000; ++i) {
      const auto [id, fresh] = table.insert(std::to_string(i));
      EXPECT_EQ(id, i);
      EXPECT_EQ(fresh, round == 0);
    }
  }
  EXPECT_EQ(table.insert("").id, 10'000U);  // a name too
  const std::string big(3u << 20, 'x');
  EXPECT_EQ(table.insert(big).id, 10'001U);
  const NameTable moved = std::move(table);
  EXPECT_EQ(moved.name(*moved.find("9999")), "9999");
  EXPECT_EQ(moved.name(10'001), big);
  EXPECT_FALSE(moved.find("10000"));
  table.insert("after the move");  // NOLINT: what was moved from is empty and can be used
  EXPECT_EQ(moved.name(10'001), big);
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_FALSE(find_bad_utf8("plain text of more than eight bytes"));
  EXPECT_FALSE(find_bad_utf8("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  EXPECT_EQ(find_bad_utf8("01234567\x80"), 8U);
  EXPECT_EQ(find_bad_utf8("0123456789ab\xe2\x82"), 12U);  // cut off
  for (const char* bad :
       {"\xc1\xbf", "\xe0\x9f\xbf", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_EQ(find_bad_utf8(bad), 0U);
}

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
  EXPECT_NE(read_header(path).error().message().find("InvalidHeaderLength"), std::string::npos);
  write(path, std::string("\x02\0\0\0\0\0\0\0", 8) + "{}");
  EXPECT_TRUE(read_header(path).ok());
}

TEST(Index, RefusesPathsAndWrongForms) {
  const TemporaryDirectory directory;
  const auto path = directory.path() + "/model.safetensors.index.json";
  for (const char* bad :
       {"{}", "[]", R"({"weight_map":5})", R"({"weight_map":{"a":5}})", R"({"weight_map":{"a":"../b"}})",
        R"({"weight_map":{"a":"/etc/x"}})", R"({"weight_map":{"a":""}})",
        R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})", R"({"weight_map":{"a":"x"}})",
        R"({"weight_map":{"a":".x.safetensors"}})", R"({"weight_map":{"a":"x.safetensors"}} 7)",
        R"({"weight_map":{},"weight_map":{}})", R"({"metadata":{"x":1,"x":2},"weight_map":{}})", "\xff"}) {
    write(path, bad);
    EXPECT_FALSE(read_index(directory.path()).ok()) << bad;
  }
  write(path, R"({"metadata":{"total_size":7},"weight_map":{"a":"x.safetensors"}})");
  const auto index = read_index(directory.path());
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->shard("a"), "x.safetensors");
  EXPECT_EQ(index->shard("b"), "");
  EXPECT_EQ(index->first_tensor_of("x.safetensors"), "a");
  EXPECT_EQ(index->total_bytes, 7U);
}

TEST(StrictJson, RefusesDeepNesting) {
  EXPECT_FALSE(parse_strict(std::string(100, '[') + std::string(100, ']'), "x").ok());
  EXPECT_TRUE(parse_strict(std::string(30, '[') + std::string(30, ']'), "x").ok());
}

// Found by fuzzing: the library ends at a zero byte, whatever stands behind it.
TEST(StrictJson, RefusesWhatOtherReadersRefuse) {
  for (const std::string& text :
       {std::string("{}\0", 3), std::string("{}\0{\"a\":1}", 10), std::string("\xef\xbb\xbf{}")})
    EXPECT_FALSE(parse_strict(text, "x").ok());
  const auto large = parse_strict(R"({"a":1e999})", "x");
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().reason, "a number is larger than a double can hold");
}

}  // namespace
}  // namespace troika::safetensors
