#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/tokenizer/pretokenizer.hpp"

#include <pcre2.h>

#include <array>
#include <string>
#include <utility>

#include "engine/tokenizer/fault.hpp"

namespace troika::tokenizer {
namespace {

using nlohmann::json;

// A text of some MiB needs a step or two a byte; far more means a pattern that backtracks without end.
constexpr std::uint32_t kMatchLimit = 50'000'000;
constexpr std::uint32_t kHeapLimitKib = 65'536;
constexpr std::size_t kMostPatterns = 16;
constexpr std::size_t kLongestPattern = 16'384;

// What ByteLevel with use_regex splits by (published with GPT-2).
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

std::string pattern_of_literal(std::string_view literal) {
  std::string out;
  for (const char c : literal) {
    if (std::string_view(R"(\^$.[]|()?*+{}-#)").find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

}  // namespace

class Pretokenizer::Pattern {
 public:
  static Result<Pattern> compile(const std::string& text) {
    int code = 0;
    PCRE2_SIZE offset = 0;
    Pattern pattern;
    pattern.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                      PCRE2_UTF | PCRE2_UCP, &code, &offset, nullptr));
    if (!pattern.code_) {
      std::array<PCRE2_UCHAR, 128> message{};
      pcre2_get_error_message(code, message.data(), message.size());
      return fault("pre_tokenizer pattern", std::string(reinterpret_cast<const char*>(message.data())) +
                                                " at offset " + std::to_string(offset));
    }
    return pattern;
  }

  // Matches and what lies between them, in order.
  Status split(std::string_view text, std::vector<std::string_view>& out) const {
    const std::unique_ptr<pcre2_match_data, FreeMatch> data(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    const std::unique_ptr<pcre2_match_context, FreeContext> context(pcre2_match_context_create(nullptr));
    if (!data || !context) return fault("pre_tokenizer", "out of memory");
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    std::size_t done = 0;
    std::size_t from = 0;
    while (from < text.size()) {
      const int count =
          pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, data.get(), context.get());
      if (count == PCRE2_ERROR_NOMATCH) break;
      if (count < 0)
        return fault("pre_tokenizer", "a pattern passed its match limit (" + std::to_string(count) + ")");
      const auto* bounds = pcre2_get_ovector_pointer(data.get());
      if (bounds[1] <= bounds[0]) {
        // An empty match splits nothing; go on behind the next character.
        from = bounds[0] + 1;
        while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0U) == 0x80U)
          ++from;
        continue;
      }
      if (bounds[0] > done) out.push_back(text.substr(done, bounds[0] - done));
      out.push_back(text.substr(bounds[0], bounds[1] - bounds[0]));
      done = from = bounds[1];
    }
    if (done < text.size()) out.push_back(text.substr(done));
    return Done{};
  }

 private:
  std::unique_ptr<pcre2_code, FreeCode> code_;
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

Status Pretokenizer::add_step(const json& step, bool last) {
  if (!step.is_object() || !step.contains("type") || !step["type"].is_string()) {
    return fault("pre_tokenizer", "a step without a type");
  }
  const auto type = step["type"].get<std::string>();
  const auto flag = [&](const char* name, bool fallback) {
    const auto found = step.find(name);
    return found == step.end() || !found->is_boolean() ? fallback : found->get<bool>();
  };
  if (type == "ByteLevel") {
    if (!last) return fault("pre_tokenizer", "ByteLevel is not the last step");
    if (flag("add_prefix_space", true))
      return fault("pre_tokenizer", "ByteLevel.add_prefix_space is not supported");
    if (!flag("use_regex", true)) return Done{};
    TROIKA_TRY(pattern, Pattern::compile(kByteLevelPattern));
    patterns_.push_back(std::move(pattern));
    return Done{};
  }
  if (type != "Split") return fault("pre_tokenizer", type + " is not supported");
  if (last) return fault("pre_tokenizer", "the last step is not ByteLevel");
  if (flag("invert", false)) return fault("pre_tokenizer", "Split.invert is not supported");
  const auto behaviour = step.value("behavior", json());
  if (behaviour != "Isolated")
    return fault("pre_tokenizer", "Split.behavior " + behaviour.dump() + " is not supported");
  const auto pattern_json = step.value("pattern", json());
  std::string text;
  if (pattern_json.is_object() && pattern_json.contains("Regex") && pattern_json["Regex"].is_string()) {
    text = pattern_json["Regex"].get<std::string>();
  } else if (pattern_json.is_object() && pattern_json.contains("String") &&
             pattern_json["String"].is_string()) {
    text = pattern_of_literal(pattern_json["String"].get<std::string>());
  } else {
    return fault("pre_tokenizer", "Split.pattern is neither Regex nor String");
  }
  if (text.size() > kLongestPattern) return fault("pre_tokenizer", "a pattern over 16384 bytes");
  TROIKA_TRY(pattern, Pattern::compile(text));
  patterns_.push_back(std::move(pattern));
  return Done{};
}

Result<Pretokenizer> Pretokenizer::parse(const json& config) {
  Pretokenizer pretokenizer;
  if (config.is_object() && config.value("type", json()) == "Sequence") {
    const auto steps = config.value("pretokenizers", json());
    if (!steps.is_array() || steps.empty() || steps.size() > kMostPatterns) {
      return fault("pre_tokenizer", "Sequence.pretokenizers is not a list of 1 to 16 steps");
    }
    for (std::size_t i = 0; i < steps.size(); ++i)
      TROIKA_CHECK(pretokenizer.add_step(steps[i], i + 1 == steps.size()));
    return pretokenizer;
  }
  TROIKA_CHECK(pretokenizer.add_step(config, true));
  return pretokenizer;
}

Result<std::vector<std::string_view>> Pretokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  for (const auto& pattern : patterns_) {
    std::vector<std::string_view> finer;
    for (const auto piece : pieces)
      TROIKA_CHECK(pattern.split(piece, finer));
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace troika::tokenizer
