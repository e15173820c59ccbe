#include "platform/framing.hpp"

#include <gtest/gtest.h>

#include <random>

#include "protocol/messages.hpp"

namespace troika::platform {
namespace {

std::string bytes_of(const Frame& frame) {
  std::string out;
  append_frame(out, frame);
  return out;
}

TEST(Framing, LengthIsBigEndianAndKindFollows) {
  EXPECT_EQ(bytes_of({Frame::Kind::Raw, "abc"}), std::string("\0\0\0\3\1abc", 8));
}

TEST(Framing, CutsFramesHoweverTheBytesArrive) {
  const std::string stream = bytes_of({Frame::Kind::Message, "one"}) + bytes_of({Frame::Kind::Raw, ""}) +
                             bytes_of({Frame::Kind::Message, std::string(70'000, 'x')});
  for (const std::size_t step : {1u, 2u, 7u, 4096u, 1u << 20}) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.append(std::string_view(stream).substr(at, step));
      while (true) {
        auto next = reader.next();
        ASSERT_TRUE(next.ok());
        if (!next->has_value()) break;
        frames.push_back(**std::move(next));
      }
    }
    ASSERT_EQ(frames.size(), 3u) << step;
    EXPECT_EQ(frames[0].payload, "one");
    EXPECT_EQ(frames[1].kind, Frame::Kind::Raw);
    EXPECT_EQ(frames[2].payload.size(), 70'000u);
  }
}

// The length alone is enough: nothing is kept for a frame that will not be read.
TEST(Framing, TooLongOrUnknownIsRefusedAtTheHeader) {
  const auto refused = [](std::string_view header) {
    FrameReader reader;
    reader.append(header);
    const auto next = reader.next();
    return next.ok() ? std::string("accepted") : next.error().reason;
  };
  EXPECT_EQ(refused({"\0\0\0\1\2", 5}), "unknown kind 2");
  EXPECT_EQ(refused({"\0\x40\0\1\0", 5}), "4194305 bytes, at most 4194304 are allowed");
  EXPECT_EQ(refused({"\0\x40\0\0\0", 5}), "accepted");
  EXPECT_EQ(refused({"\0\1\0\1\1", 5}), "65537 bytes, at most 65536 are allowed");
  EXPECT_EQ(refused({"\xff\xff\xff\xff\0", 5}), "4294967295 bytes, at most 4194304 are allowed");
}

TEST(Framing, RandomBytesNeverCrash) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    FrameReader reader;
    for (int part = 0; part < 4; ++part) {
      std::string bytes(random() % 64, '\0');
      for (char& c : bytes)
        c = static_cast<char>(random() % 4 == 0 ? random() : 0);
      reader.append(bytes);
      while (true) {
        const auto next = reader.next();
        if (!next.ok() || !next->has_value()) break;
      }
    }
  }
}

}  // namespace
}  // namespace troika::platform
