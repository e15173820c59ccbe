// Lines for people on stderr (the journal under systemd): one line an event, never secrets.
#pragma once

#include <string>
#include <string_view>

namespace troika::platform {

// Put before each line: "troikad", "troika-agent[spark-1]".
void set_log_name(std::string name);

// "2026-11-30T20:27:32.004Z troikad: TEXT". Control characters are written as \xNN; lines over 4 KiB are cut.
void log(std::string_view text);

}  // namespace troika::platform
