// The text that the small model's tokenizer is trained on and whose words it babbles.
#pragma once

#include <string_view>

namespace troika::maker {

extern const std::string_view kSampleText;

}  // namespace troika::maker
