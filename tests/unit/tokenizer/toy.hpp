// The small model's tokenizer, for tests.
#pragma once

#include <gtest/gtest.h>

#include "engine/maker/sample_text.hpp"
#include "engine/maker/toy_tokenizer.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace troika::tokenizer {

inline const std::string& toy_json() {
  static const std::string json = maker::train_tokenizer(maker::kSampleText, 200)->json;
  return json;
}

inline const Tokenizer& toy() {
  static const Tokenizer tokenizer = *Tokenizer::parse(toy_json());
  return tokenizer;
}

}  // namespace troika::tokenizer
