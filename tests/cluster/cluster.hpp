// A cluster of real processes with a tiny model for each test, and the patience that a slow machine needs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "cli/demo/look.hpp"
#include "cli/demo/requests.hpp"
#include "cli/local/local_cluster.hpp"
#include "cli/local/stream.hpp"
#include "vocabulary/units.hpp"

namespace troika::local {

inline constexpr Bytes kMaxFile{64u << 20};  // of a log, database or shard that a test reads

// Limits of waiting, never pauses: a test that passes does not take longer for them. Multiplied where a
// sanitizer or TROIKA_PATIENCE says so.
Duration patience(std::chrono::seconds limit);

inline Options tiny_cluster() {
  Options options;
  options.prefix = "troika-test";
  options.model = maker::tiny_model();
  options.model.shards = 6;
  options.model.max_position = 16384;
  options.model.original_max_position = 4096;
  options.model.yarn_factor = 4;
  options.shape.layers = {2, 2, 2};
  options.shape.rate = "1000";  // unlimited for tests of something else
  options.shape.burst = 8;
  options.shape.attempts = 3;
  return options;
}

class ClusterTest : public testing::Test {
 protected:
  void SetUp() override;  // sweeps what a killed test left
  void TearDown()
      override;  // tells the ends of the logs where the test failed; a cluster that is left goes by force

  // Whatever a test cannot go on without throws, and so ends and fails it.
  void make(Options options = tiny_cluster());
  void start();  // all agents and the gateway connected
  void serve();  // both replicas serve
  // The end proves that nothing is left.
  void end();

  protocol::StatusReply status() const;
  // The status that fulfils the condition.
  protocol::StatusReply wait(const std::string& what, const Condition& holds,
                             std::chrono::seconds limit = std::chrono::seconds{90}) const;
  pid_t pid_of(const std::string& stage) const;
  StreamOutcome ask(std::uint32_t max_tokens = 8) const;           // to its end
  std::unique_ptr<Stream> stream(std::uint32_t max_tokens) const;  // under way
  void kill(pid_t pid, int signal = 9) const;

  std::unique_ptr<LocalCluster> cluster_;
};

}  // namespace troika::local
