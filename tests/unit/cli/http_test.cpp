#include "cli/local/http.hpp"

#include <gtest/gtest.h>

namespace troika::local {
namespace {

BodyDecoder decoder(std::map<std::string, std::string> headers) {
  return *BodyDecoder::of(200, headers);
}

TEST(HttpBody, ChunksCutAtEveryByteGiveTheSameBody) {
  const std::string wire = "5;x=1\r\nhello\r\n7\r\n, world\r\n0\r\nTrailer: 1\r\n\r\n";
  for (std::size_t cut = 0; cut <= wire.size(); ++cut) {
    BodyDecoder body = decoder({{"transfer-encoding", "chunked"}});
    std::string out;
    ASSERT_TRUE(body.feed(wire.substr(0, cut), out).ok());
    EXPECT_EQ(body.complete(), cut == wire.size());
    ASSERT_TRUE(body.feed(wire.substr(cut), out).ok());
    EXPECT_EQ(out, "hello, world");
    EXPECT_TRUE(body.complete());
  }
}

TEST(HttpBody, ACutChunkedBodyIsNotComplete) {
  BodyDecoder body = decoder({{"transfer-encoding", "chunked"}});
  std::string out;
  ASSERT_TRUE(body.feed("5\r\nhello\r\n", out).ok());
  body.closed();
  EXPECT_FALSE(body.complete());
}

TEST(HttpBody, WrongFramingIsAnError) {
  std::string out;
  EXPECT_FALSE(decoder({{"transfer-encoding", "chunked"}}).feed("zz\r\n", out).ok());
  EXPECT_FALSE(decoder({{"transfer-encoding", "chunked"}}).feed("1\r\nab\r\n", out).ok());
  EXPECT_FALSE(decoder({{"transfer-encoding", "chunked"}}).feed("0\r\n\r\nx", out).ok());
  EXPECT_FALSE(decoder({{"content-length", "2"}}).feed("abc", out).ok());
  EXPECT_FALSE(BodyDecoder::of(200, {{"content-length", "-2"}}).ok());
  EXPECT_FALSE(BodyDecoder::of(200, {{"transfer-encoding", "gzip"}}).ok());
}

TEST(HttpBody, ContentLengthEndsTheBody) {
  BodyDecoder body = decoder({{"content-length", "3"}});
  std::string out;
  ASSERT_TRUE(body.feed("ab", out).ok());
  body.closed();
  EXPECT_FALSE(body.complete());
  ASSERT_TRUE(body.feed("c", out).ok());
  EXPECT_TRUE(body.complete());
  EXPECT_TRUE(decoder({{"content-length", "0"}}).complete());
}

TEST(HttpBody, WithoutALengthTheCloseEndsIt) {
  BodyDecoder body = decoder({});
  std::string out;
  ASSERT_TRUE(body.feed("abc", out).ok());
  EXPECT_FALSE(body.complete());
  body.closed();
  EXPECT_TRUE(body.complete());
}

}  // namespace
}  // namespace troika::local
