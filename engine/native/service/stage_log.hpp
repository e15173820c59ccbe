// Lines on stderr that the supervisor reads: "troika-stage[a/0 e7]: TEXT".
#pragma once

#include <string>
#include <string_view>

namespace troika::native {

// Called once, before other threads.
void set_log_prefix(std::string prefix);

// One write a line; control characters are replaced, lines over 2 KiB are cut. From any thread.
void stage_log(std::string_view text);

}  // namespace troika::native
