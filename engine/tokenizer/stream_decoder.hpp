// Tokens to text while they come: never half a character.
#pragma once

#include <string>

#include "engine/tokenizer/tokenizer.hpp"

namespace troika::tokenizer {

// Bytes that cannot be UTF-8 become U+FFFD, so that what is given out is always valid.
class StreamDecoder {
 public:
  // The text that is complete with these bytes.
  std::string push(std::string_view bytes);
  // What is left at the end of the stream.
  std::string finish();

 private:
  std::string held_;
};

}  // namespace troika::tokenizer
