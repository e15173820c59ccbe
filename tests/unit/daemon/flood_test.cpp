// A flood of requests: exactly what the rate allows passes, memory stays flat, every other answer is a proper
// 429.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "daemon/gateway/resident.hpp"
#include "tests/unit/daemon/gateway_rig.hpp"

namespace troika::daemon {
namespace {

#if defined(TROIKA_SANITIZED)
constexpr std::size_t kGrowth = 1u << 30;  // a sanitizer keeps what was freed
#else
constexpr std::size_t kGrowth = 24u << 20;
#endif

TEST(Flood, AdmitsExactlyWhatTheRateAllowsAndStaysSmall) {
  constexpr int kRequests = 10000;
  constexpr int kClients = 64;
  RigOptions options;
  options.rule.rate = 2;
  options.rule.burst = 3;
  options.rule.in_flight = 8;
  GatewayRig rig(options);
  rig.agent(0).script(whole_answer(200, "{}"));
  std::atomic<int> left{kRequests};
  struct Passed {
    Instant sent, answered;  // it was passed on somewhere between these two
  };
  std::mutex mutex;
  std::vector<Passed> passed;
  std::atomic<int> refused{0};
  std::atomic<int> strange{0};
  std::atomic<int> wrong_retry{0};
  const auto request = post("/v1/chat/completions", GatewayRig::body("\"max_tokens\":5"));
  const auto client = [&](int number) {
    Connected kept(rig.port());
    while (left.fetch_sub(1) > 0) {
      // Some keep their connection, some make a new one for each request.
      std::optional<Connected> fresh;
      if (number % 4 == 0) fresh.emplace(rig.port());
      Connected& connection = fresh ? *fresh : kept;
      const Instant sent = platform::now();
      if (!connection.send(request)) {
        ++strange;
        continue;
      }
      const auto reply = read_reply(connection);
      if (reply.status == 200) {
        const std::lock_guard guard(mutex);
        passed.push_back({sent, platform::now()});
      } else if (reply.status == 429) {
        ++refused;
        if (reply.header("Retry-After") != "1") ++wrong_retry;
      } else {
        ++strange;
      }
    }
  };
  const auto before_memory = gateway::resident_bytes();
  const auto begin = platform::now();
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i)
    clients.emplace_back(client, i);
  for (auto& thread : clients)
    thread.join();
  EXPECT_EQ(strange, 0);
  EXPECT_EQ(wrong_retry, 0);
  EXPECT_EQ(passed.size() + static_cast<std::size_t>(refused), std::size_t{kRequests});
  EXPECT_EQ(rig.agent(0).arrivals().size(), passed.size()) << "nothing else was passed on";
  // In any interval of length w at most burst + rate * w were passed on. Those that were sent and answered
  // within it were passed on within it, however slow this machine is.
  for (const Passed& first : passed) {
    for (const Passed& last : passed) {
      const double w = std::chrono::duration<double>(last.answered - first.sent).count();
      const auto within = std::count_if(passed.begin(), passed.end(), [&](const Passed& one) {
        return one.sent >= first.sent && one.answered <= last.answered;
      });
      EXPECT_LE(static_cast<double>(within), 3 + 2 * std::max(w, 0.0));
    }
  }
  // Nor is much of the rate wasted, as one is always at the door (policies' tests have the exact figure).
  EXPECT_GE(static_cast<double>(passed.size()), 3 + platform::seconds_since(begin) - 2);
  EXPECT_LE(gateway::resident_bytes(), before_memory + kGrowth);
}

}  // namespace
}  // namespace troika::daemon
