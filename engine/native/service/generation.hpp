// One request under way: from sampled tokens to text, and when it ends. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/native/kv_cache.hpp"
#include "engine/native/sampler.hpp"
#include "engine/tokenizer/stream_decoder.hpp"

namespace troika::native {

struct GenerationRequest {
  std::vector<tokenizer::TokenId> prompt;
  std::uint32_t max_tokens = 0;
  Sampling sampling;
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

enum class Finish { Stop, Length };
std::string_view name(Finish finish);  // "stop", "length"

// Looks for the first of several strings in text that comes in pieces.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  // Text that certainly comes before any stop string. After a match: what is before it, and nothing any more.
  std::string push(std::string_view text);
  std::string finish();
  bool matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool matched_ = false;
};

class Generation {
 public:
  Generation(GenerationRequest request, const tokenizer::Tokenizer& tokenizer,
             std::vector<tokenizer::TokenId> eos);

  // Takes the next token; true when it was the last.
  bool take(tokenizer::TokenId token);
  // Text since the last call: whole characters, nothing of a stop string.
  std::string take_text() { return std::exchange(text_, {}); }
  bool has_text() const { return !text_.empty(); }
  const std::optional<Finish>& finish() const { return finish_; }
  std::size_t prompt_tokens() const { return prompt_tokens_; }
  std::size_t completion_tokens() const { return completion_tokens_; }

  SequenceId sequence = 0;
  std::function<void()> changed;  // called after text or the end has come

 private:
  void end(Finish finish);

  const tokenizer::Tokenizer& tokenizer_;
  std::vector<tokenizer::TokenId> eos_;
  std::size_t prompt_tokens_;
  std::uint32_t max_tokens_;
  bool ignore_eos_;
  std::size_t completion_tokens_ = 0;
  tokenizer::StreamDecoder decoder_;
  StopMatcher stop_;
  std::string text_;
  std::optional<Finish> finish_;
};

}  // namespace troika::native
