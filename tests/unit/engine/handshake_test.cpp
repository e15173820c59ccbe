#include "engine/native/service/handshake.hpp"

#include <gtest/gtest.h>

namespace troika::native {
namespace {

Hello sample_hello() {
  Hello hello;
  hello.cluster = "lab";
  hello.replica = "a";
  hello.epoch = 7;
  hello.from_rank = 0;
  hello.to_rank = 1;
  hello.ranks = 3;
  hello.hidden = 192;
  hello.layers = 43;
  hello.boundary = 14;
  hello.rows = 512;
  hello.sequences = 8;
  hello.context = 12288;
  hello.nonce.fill(5);
  return hello;
}

TEST(Hello, ComesBackAsItWas) {
  const auto bytes = encode(sample_hello());
  const auto length = parse_hello_prefix(bytes.substr(0, kHelloPrefix));
  ASSERT_TRUE(length.ok());
  EXPECT_EQ(*length, bytes.size() - kHelloPrefix);
  const auto hello = parse_hello_body(bytes.substr(kHelloPrefix));
  ASSERT_TRUE(hello.ok());
  EXPECT_FALSE(difference(sample_hello(), *hello).has_value());
  EXPECT_EQ(hello->nonce, sample_hello().nonce);
  for (std::size_t cut = 0; cut < *length; ++cut)
    EXPECT_FALSE(parse_hello_body(bytes.substr(kHelloPrefix, cut)).ok());
}

TEST(Hello, OtherProtocolsAndVersionsAreNamed) {
  EXPECT_FALSE(parse_hello_prefix("GET / HTTP/1").ok());
  auto bytes = encode(sample_hello()).substr(0, kHelloPrefix);
  bytes[8] = 2;
  EXPECT_EQ(parse_hello_prefix(bytes).error().reason, "protocol version 2 where 1 is expected");
}

TEST(Hello, EveryDifferenceIsNamed) {
  const auto told = [](auto change) {
    auto other = sample_hello();
    change(other);
    return difference(sample_hello(), other).value_or("none");
  };
  EXPECT_EQ(told([](Hello& h) { h.epoch = 6; }), "epoch 6 where 7 is expected");
  EXPECT_EQ(told([](Hello& h) { h.cluster = "x\n\x1b"; }), "cluster x?? where lab is expected");
  EXPECT_EQ(told([](Hello& h) { h.replica = "b"; }), "replica b where a is expected");
  EXPECT_EQ(told([](Hello& h) { h.from_rank = 2; }), "from-rank 2 where 0 is expected");
  EXPECT_EQ(told([](Hello& h) { h.to_rank = 2; }), "to-rank 2 where 1 is expected");
  EXPECT_EQ(told([](Hello& h) { h.ranks = 2; }), "number of ranks 2 where 3 is expected");
  EXPECT_EQ(told([](Hello& h) { h.hidden = 4096; }), "hidden size 4096 where 192 is expected");
  EXPECT_EQ(told([](Hello& h) { h.layers = 42; }), "number of layers 42 where 43 is expected");
  EXPECT_EQ(told([](Hello& h) { h.boundary = 15; }), "layer boundary 15 where 14 is expected");
  EXPECT_EQ(told([](Hello& h) { h.dtype = "bf16"; }), "dtype bf16 where f32 is expected");
  EXPECT_EQ(told([](Hello& h) { h.rows = 1; }), "chunked prefill 1 where 512 is expected");
}

TEST(LinkKey, IsSixtyFourHexDigits) {
  EXPECT_TRUE(parse_link_key(std::string(64, 'a')).ok());
  EXPECT_TRUE(parse_link_key(std::string(64, 'F').append("\n")).ok());
  EXPECT_EQ((*parse_link_key("0f" + std::string(62, '0')))[0], 15);
  EXPECT_FALSE(parse_link_key(std::string(63, 'a')).ok());
  EXPECT_FALSE(parse_link_key(std::string(63, 'a').append("g")).ok());
  EXPECT_FALSE(parse_link_key("").ok());
}

TEST(Proof, DependsOnKeyEndAndBothHellos) {
  LinkKey key{};
  LinkKey other{};
  other[31] = 1;
  const auto mac = proof(key, LinkEnd::Dialer, "a", "b");
  EXPECT_TRUE(same(mac, std::string(reinterpret_cast<const char*>(mac.data()), mac.size())));
  EXPECT_FALSE(same(mac, "short"));
  EXPECT_NE(mac, proof(other, LinkEnd::Dialer, "a", "b"));
  EXPECT_NE(mac, proof(key, LinkEnd::Listener, "a", "b"));
  EXPECT_NE(mac, proof(key, LinkEnd::Dialer, "x", "b"));
  EXPECT_NE(mac, proof(key, LinkEnd::Dialer, "a", "x"));
}

}  // namespace
}  // namespace troika::native
