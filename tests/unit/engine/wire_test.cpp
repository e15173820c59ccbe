#include "engine/native/service/wire.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace troika::native {
namespace {

const WireLimits kLimits{4, 16, 3, 100, 1000, 3};

Step sample_step() {
  Step step;
  step.number = 77;
  step.releases = {1, 2};
  step.admissions = {{5, {0.5F, 0.9F, 123456789012345}}};
  step.segments = {{5, 0, 2, false}, {6, 10, 1, true}};
  for (int i = 0; i < 12; ++i)
    step.hidden.push_back(static_cast<float>(i) * 0.1F);
  return step;
}

std::string payload(const std::string& frame) {
  return frame.substr(kFrameHeader);
}

TEST(Wire, StepsTokensAndSurveysComeBackAsTheyWere) {
  const auto step = sample_step();
  const auto frame = encode(step);
  const auto header = parse_frame_header(frame.substr(0, kFrameHeader), kLimits);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->bytes, frame.size() - kFrameHeader);
  EXPECT_EQ(header->kind, FrameKind::Step);
  const auto back = decode_step(payload(frame), kLimits);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->number, step.number);
  EXPECT_EQ(back->releases, step.releases);
  EXPECT_EQ(back->admissions, step.admissions);
  EXPECT_EQ(back->segments, step.segments);
  EXPECT_EQ(back->hidden, step.hidden);
  const StepTokens tokens{9, {{5, 99}, {6, 0}}};
  EXPECT_EQ(decode_tokens(payload(encode(tokens)), kLimits)->sampled, tokens.sampled);
  const Survey survey{4096, {14, 14, 15}};
  EXPECT_EQ(*decode_survey(payload(encode(survey)), kLimits), survey);
}

TEST(Wire, HeadersOfUnknownKindOrTooLongAreRefused) {
  EXPECT_FALSE(parse_frame_header(std::string("\0\0\0\0\0", 5), kLimits).ok());
  EXPECT_FALSE(parse_frame_header(std::string("\0\0\0\0\x04", 5), kLimits).ok());
  EXPECT_FALSE(parse_frame_header("\xff\xff\xff\x7f\x01", kLimits).ok());
  EXPECT_FALSE(parse_frame_header("\xff\xff", kLimits).ok());
}

TEST(Wire, ValuesBeyondTheLimitsAreRefused) {
  const auto refused = [](auto change) {
    auto step = sample_step();
    change(step);
    return !decode_step(payload(encode(step)), kLimits).ok();
  };
  EXPECT_TRUE(refused([](Step& s) { s.releases = {1, 2, 3, 4}; }));
  EXPECT_TRUE(refused([](Step& s) { s.hidden.pop_back(); }));
  EXPECT_TRUE(refused([](Step& s) { s.segments[0].count = 0; }));
  EXPECT_TRUE(refused([](Step& s) { s.segments[0].start = 999; }));
  EXPECT_TRUE(refused([](Step& s) { s.segments[0].start = 0xffffffff; }));
  EXPECT_TRUE(refused([](Step& s) { s.admissions[0].sampling.top_p = 0; }));
  EXPECT_TRUE(refused(
      [](Step& s) { s.admissions[0].sampling.temperature = std::numeric_limits<float>::quiet_NaN(); }));
  EXPECT_FALSE(decode_tokens(payload(encode(StepTokens{1, {{1, 100}}})), kLimits).ok());
  EXPECT_FALSE(decode_survey(payload(encode(Survey{1, {1, 2, 3, 4}})), kLimits).ok());
  EXPECT_FALSE(decode_survey(payload(encode(Survey{1, {}})), kLimits).ok());
}

TEST(Wire, CutAndChangedFramesAreRefusedOrDecodedNeverWorse) {
  const auto whole = payload(encode(sample_step()));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(decode_step(whole.substr(0, length), kLimits).ok());
  }
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    auto changed = whole;
    for (int k = 0; k < 3; ++k)
      changed[random() % changed.size()] = static_cast<char>(random());
    (void)decode_step(changed, kLimits);
    (void)decode_tokens(changed, kLimits);
    (void)decode_survey(changed, kLimits);
  }
}

}  // namespace
}  // namespace troika::native
