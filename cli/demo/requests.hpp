// What the demo asks the gateway.
#pragma once

#include <cstdint>
#include <string>

#include "cli/local/local_cluster.hpp"
#include "cli/local/stream.hpp"
#include "vocabulary/result.hpp"

namespace troika::demo {

local::HttpRequest completion(const std::string& model, const std::string& prompt, std::uint32_t max_tokens,
                              bool stream);

struct Speed {
  double ttft_s = 0;
  double tokens_per_s = 0;  // of the pieces after the first
};
Speed speed_of(const local::StreamOutcome& outcome);

// Why an outcome is not what was hoped for, in one line.
std::string described(const local::StreamOutcome& outcome);

// From the sum over the ranks 0 of a replica's counter on the stage's own metrics page; error: the page or
// the name is missing.
Result<double> stage_counter(const local::LocalCluster& cluster, const std::string& replica,
                             const std::string& name);
// One sample of a Prometheus page; labels are ignored, samples of one name are added up.
Result<double> sample(std::string_view page, std::string_view name);

}  // namespace troika::demo
