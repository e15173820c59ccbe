#include "engine/native/service/wire.hpp"

#include <bit>
#include <cmath>
#include <utility>

#include "engine/native/service/bytes.hpp"

namespace troika::native {
namespace {

static_assert(std::endian::native == std::endian::little, "activations are sent as they lie in memory");

Error bad_frame(std::string reason) {
  return Error{"read", "a frame of the previous stage", std::move(reason)};
}

std::string start(FrameKind kind) {
  std::string out;
  put(out, std::uint32_t{0});
  put(out, static_cast<std::uint8_t>(kind));
  return out;
}

std::string sealed(std::string frame) {
  const auto bytes = static_cast<std::uint32_t>(frame.size() - kFrameHeader);
  std::string length;
  put(length, bytes);
  frame.replace(0, length.size(), length);
  return frame;
}

constexpr std::size_t kStepFixed = 8 + 4 * 4;
constexpr std::size_t kAdmissionBytes = 8 + 4 + 4 + 8;
constexpr std::size_t kSegmentBytes = 8 + 4 + 4 + 1;

std::uint64_t longest(FrameKind kind, const WireLimits& limits) {
  switch (kind) {
    case FrameKind::Step:
      return kStepFixed + std::uint64_t{limits.sequences} * (8 + kAdmissionBytes + kSegmentBytes) +
             std::uint64_t{limits.rows} * limits.hidden * sizeof(float);
    case FrameKind::Tokens:
      return 12 + std::uint64_t{limits.sequences} * 12;
    case FrameKind::Survey:
      return 12 + std::uint64_t{limits.ranks} * 4;
  }
  return 0;
}

}  // namespace

Result<FrameHeader> parse_frame_header(std::string_view bytes, const WireLimits& limits) {
  Taker in(bytes);
  FrameHeader header;
  header.bytes = in.take<std::uint32_t>();
  const auto kind = in.take<std::uint8_t>();
  if (in.broken()) return bad_frame("a header that is cut short");
  if (kind < 1 || kind > 3) return bad_frame("unknown kind " + std::to_string(kind));
  header.kind = static_cast<FrameKind>(kind);
  if (header.bytes > longest(header.kind, limits)) {
    return bad_frame("kind " + std::to_string(kind) + " of " + std::to_string(header.bytes) +
                     " bytes, at most " + std::to_string(longest(header.kind, limits)) + " are allowed");
  }
  return header;
}

std::string encode(const Step& step) {
  std::string out = start(FrameKind::Step);
  out.reserve(out.size() + kStepFixed + step.hidden.size() * sizeof(float) + 64 * (step.segments.size() + 1));
  put(out, step.number);
  put(out, static_cast<std::uint32_t>(step.releases.size()));
  put(out, static_cast<std::uint32_t>(step.admissions.size()));
  put(out, static_cast<std::uint32_t>(step.segments.size()));
  put(out, static_cast<std::uint32_t>(step.hidden.size()));
  for (const auto sequence : step.releases)
    put(out, sequence);
  for (const auto& admission : step.admissions) {
    put(out, admission.sequence);
    put(out, std::bit_cast<std::uint32_t>(admission.sampling.temperature));
    put(out, std::bit_cast<std::uint32_t>(admission.sampling.top_p));
    put(out, admission.sampling.seed);
  }
  for (const auto& segment : step.segments) {
    put(out, segment.sequence);
    put(out, segment.start);
    put(out, segment.count);
    put(out, static_cast<std::uint8_t>(segment.sample ? 1 : 0));
  }
  out.append(reinterpret_cast<const char*>(step.hidden.data()), step.hidden.size() * sizeof(float));
  return sealed(std::move(out));
}

Result<Step> decode_step(std::string_view payload, const WireLimits& limits) {
  Taker in(payload);
  Step step;
  step.number = in.take<std::uint64_t>();
  const auto releases = in.take<std::uint32_t>();
  const auto admissions = in.take<std::uint32_t>();
  const auto segments = in.take<std::uint32_t>();
  const auto floats = in.take<std::uint32_t>();
  if (in.broken()) return bad_frame("a step that is cut short");
  if (releases > limits.sequences || admissions > limits.sequences || segments > limits.sequences) {
    return bad_frame("a step with more than " + std::to_string(limits.sequences) + " sequences");
  }
  if (in.left() != std::uint64_t{releases} * 8 + std::uint64_t{admissions} * kAdmissionBytes +
                       std::uint64_t{segments} * kSegmentBytes + std::uint64_t{floats} * sizeof(float)) {
    return bad_frame("a step whose counts do not match its length");
  }
  for (std::uint32_t i = 0; i < releases; ++i)
    step.releases.push_back(in.take<std::uint64_t>());
  for (std::uint32_t i = 0; i < admissions; ++i) {
    Admission admission;
    admission.sequence = in.take<std::uint64_t>();
    admission.sampling.temperature = std::bit_cast<float>(in.take<std::uint32_t>());
    admission.sampling.top_p = std::bit_cast<float>(in.take<std::uint32_t>());
    admission.sampling.seed = in.take<std::uint64_t>();
    if (!std::isfinite(admission.sampling.temperature) || !(admission.sampling.top_p > 0) ||
        !(admission.sampling.top_p <= 1)) {
      return bad_frame("an admission with a temperature or top_p that cannot be");
    }
    step.admissions.push_back(admission);
  }
  std::uint64_t rows = 0;
  for (std::uint32_t i = 0; i < segments; ++i) {
    Segment segment;
    segment.sequence = in.take<std::uint64_t>();
    segment.start = in.take<std::uint32_t>();
    segment.count = in.take<std::uint32_t>();
    segment.sample = in.take<std::uint8_t>() != 0;
    if (segment.count == 0 || std::uint64_t{segment.start} + segment.count > limits.context) {
      return bad_frame("a segment beyond the context length");
    }
    rows += segment.count;
    step.segments.push_back(segment);
  }
  if (rows > limits.rows || rows * limits.hidden != floats)
    return bad_frame("a step whose activations do not fit its segments");
  step.hidden.resize(floats);
  const auto raw = in.take_bytes(std::size_t{floats} * sizeof(float));
  if (!raw.empty()) std::memcpy(step.hidden.data(), raw.data(), raw.size());
  return step;
}

std::string encode(const StepTokens& tokens) {
  std::string out = start(FrameKind::Tokens);
  put(out, tokens.number);
  put(out, static_cast<std::uint32_t>(tokens.sampled.size()));
  for (const auto& sampled : tokens.sampled) {
    put(out, sampled.sequence);
    put(out, sampled.token);
  }
  return sealed(std::move(out));
}

Result<StepTokens> decode_tokens(std::string_view payload, const WireLimits& limits) {
  Taker in(payload);
  StepTokens tokens;
  tokens.number = in.take<std::uint64_t>();
  const auto count = in.take<std::uint32_t>();
  if (in.broken() || count > limits.sequences || in.left() != std::uint64_t{count} * 12) {
    return bad_frame("tokens whose count does not match their length");
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    Sampled sampled;
    sampled.sequence = in.take<std::uint64_t>();
    sampled.token = in.take<std::uint32_t>();
    if (sampled.token >= limits.vocabulary) return bad_frame("a token beyond the vocabulary");
    tokens.sampled.push_back(sampled);
  }
  return tokens;
}

std::string encode(const Survey& survey) {
  std::string out = start(FrameKind::Survey);
  put(out, survey.kv_tokens);
  put(out, static_cast<std::uint32_t>(survey.layer_counts.size()));
  for (const auto count : survey.layer_counts)
    put(out, count);
  return sealed(std::move(out));
}

Result<Survey> decode_survey(std::string_view payload, const WireLimits& limits) {
  Taker in(payload);
  Survey survey;
  survey.kv_tokens = in.take<std::uint64_t>();
  const auto count = in.take<std::uint32_t>();
  if (in.broken() || count == 0 || count > limits.ranks || in.left() != std::uint64_t{count} * 4) {
    return bad_frame("a survey whose count does not match its length");
  }
  for (std::uint32_t i = 0; i < count; ++i)
    survey.layer_counts.push_back(in.take<std::uint32_t>());
  return survey;
}

}  // namespace troika::native
