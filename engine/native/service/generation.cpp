#include "engine/native/service/generation.hpp"

#include <algorithm>
#include <utility>

namespace troika::native {

std::string_view name(Finish finish) {
  switch (finish) {
    case Finish::Stop:
      return "stop";
    case Finish::Length:
      return "length";
  }
  return "";
}

std::string StopMatcher::push(std::string_view text) {
  if (matched_) return {};
  held_ += text;
  std::size_t first = std::string::npos;
  for (const auto& stop : stops_)
    first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    matched_ = true;
    return std::exchange(held_, {}).substr(0, first);
  }
  // Keep back the longest end that could be the beginning of a stop string.
  std::size_t kept = 0;
  for (const auto& stop : stops_) {
    for (auto length = std::min(stop.size() - 1, held_.size()); length > kept; --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) kept = length;
    }
  }
  std::string out = held_.substr(0, held_.size() - kept);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::finish() {
  return matched_ ? std::string() : std::exchange(held_, {});
}

Generation::Generation(GenerationRequest request, const tokenizer::Tokenizer& tokenizer,
                       std::vector<tokenizer::TokenId> eos)
    : tokenizer_(tokenizer),
      eos_(std::move(eos)),
      prompt_tokens_(request.prompt.size()),
      max_tokens_(request.max_tokens),
      ignore_eos_(request.ignore_eos),
      stop_(std::move(request.stop)) {}

bool Generation::take(tokenizer::TokenId token) {
  if (finish_) return true;
  ++completion_tokens_;
  if (!ignore_eos_ && std::find(eos_.begin(), eos_.end(), token) != eos_.end()) {
    end(Finish::Stop);
  } else {
    if (!tokenizer_.is_special(token)) text_ += stop_.push(decoder_.push(tokenizer_.bytes_of(token)));
    if (stop_.matched()) {
      finish_ = Finish::Stop;
    } else if (completion_tokens_ >= max_tokens_) {
      end(Finish::Length);
    }
  }
  if (changed && (finish_ || !text_.empty())) changed();
  return finish_.has_value();
}

void Generation::end(Finish finish) {
  finish_ = finish;
  text_ += stop_.push(decoder_.finish());
  if (stop_.matched()) finish_ = Finish::Stop;
  text_ += stop_.finish();
}

}  // namespace troika::native
