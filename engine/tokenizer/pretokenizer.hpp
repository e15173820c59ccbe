// Splitting text into pieces before byte-pair merging, as tokenizer.json's pre_tokenizer says.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "vocabulary/result.hpp"

namespace troika::tokenizer {

class Pretokenizer {
 public:
  // `json` is the pre_tokenizer object: a ByteLevel, or a Sequence of Splits with behaviour "Isolated" and
  // one ByteLevel at the end. Anything else is refused by name.
  static Result<Pretokenizer> parse(const nlohmann::json& json);

  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  // Pieces of `text` in order; together they are the text. `text` must be valid UTF-8.
  // Error: a pattern passed its match limit.
  Result<std::vector<std::string_view>> split(std::string_view text) const;

 private:
  class Pattern;
  Pretokenizer();
  Status add_step(const nlohmann::json& step, bool last);
  std::vector<Pattern> patterns_;
};

}  // namespace troika::tokenizer
