// The steps of `troika demo`. Each shows one promise on a running cluster; an error says what was not seen.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/demo/look.hpp"
#include "cli/demo/requests.hpp"
#include "cli/demo/story.hpp"
#include "cli/local/local_cluster.hpp"
#include "vocabulary/result.hpp"

namespace troika::demo {

struct Demo {
  local::LocalCluster& cluster;
  Story& story;
  std::optional<Instant> asked;  // the last admitted request: it was passed on between these two
  std::optional<Instant> answered;
  double tokens_per_s = 50;  // measured by the first answer; sizes the streams that must outlast something
};

// On a machine of 2 cores that is busy with something else.
inline constexpr Duration kStartLimit = std::chrono::minutes{3};
inline constexpr Duration kShortLimit = std::chrono::seconds{60};

// steps_start.cpp
Status show_model(Demo& demo);
Status show_start(Demo& demo);
// steps_requests.cpp
Status show_answer(Demo& demo);
Status show_refusal(Demo& demo);
// steps_faults.cpp
Status show_killed_stage(Demo& demo);
Status show_flipped_byte(Demo& demo);
// steps_restarts.cpp
Status show_killed_leader(Demo& demo);
Status show_killed_agent(Demo& demo);
// steps_end.cpp
Status show_incidents(Demo& demo);
Status show_end(Demo& demo);

// Waits, as long as the rate of one request in ten seconds asks for, and starts a stream; looks at
// `meanwhile` several times a second of the wait. Error: it was refused anyway, or no token came.
Result<std::unique_ptr<local::Stream>> stream_when_allowed(Demo& demo, const std::string& prompt,
                                                           std::uint32_t max_tokens,
                                                           const std::function<void()>& meanwhile = {});
// After the stream ended: it was admitted.
void remember(Demo& demo, const local::StreamOutcome& outcome);

// An error of the demo: `what` was expected and is not there.
Error unseen(std::string what, std::string instead);

// Of a command that must end well.
Status good(const cli::Answer<protocol::CommandDone>& answer, const std::string& what);

}  // namespace troika::demo
