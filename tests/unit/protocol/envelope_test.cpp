// What stands around every message.
#include <gtest/gtest.h>

#include <random>

#include "protocol/codec.hpp"
#include "protocol/messages.hpp"

namespace troika::protocol {
namespace {

std::string refusal(std::string_view frame) {
  const auto envelope = parse_envelope(frame);
  return envelope.ok() ? "accepted" : envelope.error().reason;
}

TEST(Envelope, OtherFormsAreNamed) {
  EXPECT_EQ(refusal(""), "not JSON");
  EXPECT_EQ(refusal("{"), "not JSON");
  EXPECT_EQ(refusal("{} x"), "not JSON");
  EXPECT_EQ(refusal(std::string_view("{}\0x", 4)), "not JSON");
  EXPECT_EQ(refusal("\xff\xfe"), "not JSON");
  EXPECT_EQ(refusal("{\"v\":[1,0],\"type\":\"x\xff\",\"id\":1}"), "not JSON");
  EXPECT_EQ(refusal("[]"), "not a JSON object");
  EXPECT_EQ(refusal("null"), "not a JSON object");
  EXPECT_EQ(refusal("{}"), "\"v\" must be [major, minor]");
  EXPECT_EQ(refusal(R"({"v":1,"type":"x","id":1})"), "\"v\" must be [major, minor]");
  EXPECT_EQ(refusal(R"({"v":[1],"type":"x","id":1})"), "\"v\" must be [major, minor]");
  EXPECT_EQ(refusal(R"({"v":[1,-1],"type":"x","id":1})"), "\"v\" must be [major, minor]");
  EXPECT_EQ(refusal(R"({"v":[1,0],"type":7,"id":1})"), "\"type\" must be a string");
  EXPECT_EQ(refusal(R"({"v":[1,0],"type":"x"})"), "\"id\" must be a whole number from 0");
  EXPECT_EQ(refusal(R"({"v":[1,0],"type":"x","id":-1})"), "\"id\" must be a whole number from 0");
  EXPECT_EQ(refusal(R"({"v":[1,0],"type":"x","id":1})"), "accepted");
}

// A rolling upgrade: a higher minor version is understood, another major one is for the caller to refuse.
TEST(Envelope, VersionsAreReadBeforeAnythingIsJudged) {
  const auto minor = parse_envelope(R"({"v":[1,99],"type":"of_tomorrow","id":1,"x":{}})");
  ASSERT_TRUE(minor.ok());
  EXPECT_TRUE(is_supported(*minor));
  EXPECT_EQ(minor->minor, 99u);
  EXPECT_EQ(minor->type, "of_tomorrow");
  const auto major = parse_envelope(R"({"v":[2,0],"type":"hello","id":3})");
  ASSERT_TRUE(major.ok());
  EXPECT_FALSE(is_supported(*major));
  EXPECT_EQ(major->id, 3u);
  // 2^32 + 1 is no version 1.
  EXPECT_EQ(refusal(R"({"v":[4294967297,0],"type":"hello","id":3})"), "\"v\" must be [major, minor]");
}

std::string nested(std::size_t depth, char open, char close) {
  return R"({"v":[1,0],"type":"x","id":1,"d":)" + std::string(depth, open) + std::string(depth, close) + "}";
}

// Parsing recurses: a hostile frame of 4 MiB of brackets must not use up the stack.
TEST(Envelope, DepthIsLimited) {
  EXPECT_EQ(refusal(nested(10, '[', ']')), "accepted");
  EXPECT_EQ(refusal(nested(20, '[', ']')), "nested deeper than 16");
  EXPECT_EQ(refusal(nested(1'000'000, '[', ']')), "nested deeper than 16");
  std::string objects = R"({"v":[1,0],"type":"x","id":1,"d":)";
  for (int i = 0; i < 100'000; ++i)
    objects += "{\"a\":";
  EXPECT_NE(refusal(objects), "accepted");
}

TEST(Envelope, RandomBytesNeverCrash) {
  std::mt19937 random(9);
  const std::string letters = "{}[]\",:0123456789.eE+-truefalsn \\u\x00\xff\xc3";
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 80, '\0');
    for (char& c : bytes)
      c = random() % 3 == 0 ? static_cast<char>(random()) : letters[random() % letters.size()];
    const auto envelope = parse_envelope(bytes);
    if (envelope.ok()) {
      EXPECT_FALSE(envelope->type.size() > bytes.size());
    }
  }
}

}  // namespace
}  // namespace troika::protocol
