// SHA-256 by the processor's own instructions, against OpenSSL's and against the standard's examples.
#include "agent/model/sha256/sha256.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "agent/model/digest.hpp"

namespace troika::model {
namespace {

std::vector<Sha256Method> methods() {
  std::vector<Sha256Method> all;
  for (const auto method : {Sha256Method::OpenSsl, Sha256Method::ShaNi, Sha256Method::Armv8})
    if (available(method)) all.push_back(method);
  return all;
}

std::string random_bytes(std::mt19937& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes)
    c = static_cast<char>(random());
  return bytes;
}

std::string digest(Sha256Method method, const std::string& text) {
  Sha256 hash(method);
  hash.update(text.data(), text.size());
  return hash.hex();
}

TEST(Sha256, ExamplesOfTheStandard) {
  for (const auto method : methods()) {
    EXPECT_EQ(digest(method, ""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        << name(method);
    EXPECT_EQ(digest(method, "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(digest(method, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(digest(method, std::string(1'000'000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

// Every length around the borders of blocks and of the padding.
TEST(Sha256, EveryLengthIsOpenSslsDigest) {
  std::mt19937 random(1);
  for (const auto method : methods())
    for (std::size_t size = 0; size <= 300; ++size) {
      const std::string text = random_bytes(random, size);
      EXPECT_EQ(digest(method, text), sha256_hex(text)) << name(method) << ", " << size << " bytes";
    }
}

TEST(Sha256, InPiecesAsInOne) {
  std::mt19937 random(2);
  for (const auto method : methods())
    for (int round = 0; round < 200; ++round) {
      const std::string text = random_bytes(random, random() % 5000);
      Sha256 hash(method);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = std::min<std::size_t>(random() % 200, text.size() - at);
        hash.update(text.data() + at, size);
        at += size;
      }
      EXPECT_EQ(hash.hex(), sha256_hex(text)) << name(method) << ", round " << round;
    }
}

// Both streams in pieces of any two sizes, some of them of one stream alone.
TEST(Sha256, TwoStreamsDoNotMix) {
  std::mt19937 random(3);
  for (const auto method : methods())
    for (int round = 0; round < 200; ++round) {
      const std::string a = random_bytes(random, random() % 5000), b = random_bytes(random, random() % 5000);
      Sha256 of_a(method), of_b(method);
      std::size_t at_a = 0, at_b = 0;
      while (at_a < a.size() || at_b < b.size()) {
        const std::size_t size_a = std::min<std::size_t>(random() % 400, a.size() - at_a);
        const std::size_t size_b = std::min<std::size_t>(random() % 400, b.size() - at_b);
        if (random() % 4 == 0) {
          of_a.update(a.data() + at_a, size_a);
          of_b.update(b.data() + at_b, size_b);
        } else {
          Sha256::update_both(of_a, a.data() + at_a, size_a, of_b, b.data() + at_b, size_b);
        }
        at_a += size_a;
        at_b += size_b;
      }
      EXPECT_EQ(of_a.hex(), sha256_hex(a)) << name(method) << ", round " << round;
      EXPECT_EQ(of_b.hex(), sha256_hex(b)) << name(method) << ", round " << round;
    }
}

TEST(Sha256, TheBestMethodIsAvailable) {
  EXPECT_TRUE(available(best_sha256()));
  EXPECT_TRUE(available(Sha256Method::OpenSsl));
}

}  // namespace
}  // namespace troika::model
