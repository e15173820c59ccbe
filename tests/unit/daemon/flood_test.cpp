// A flood of requests: exactly what the rate allows passes, memory stays flat, every other answer is a proper
// 429.
#include <gtest/gtest.h>

#include <atomic>
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
  std::atomic<int> good{0};
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
      if (!connection.send(request)) {
        ++strange;
        continue;
      }
      const auto reply = read_reply(connection);
      if (reply.status == 200) {
        ++good;
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
  EXPECT_EQ(good + refused, kRequests);
  // In any interval of length w at most burst + rate * w were passed on; nothing else passed.
  const auto arrivals = rig.agent(0).arrivals();
  EXPECT_EQ(arrivals.size(), static_cast<std::size_t>(good));
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    for (std::size_t j = i; j < arrivals.size(); ++j) {
      const double w = std::chrono::duration<double>(arrivals[j].at - arrivals[i].at).count();
      // 10 ms for the way from the gateway's decision to the agent's clock.
      EXPECT_LE(static_cast<double>(j - i + 1), 3 + 2 * (w + 0.01)) << i << ".." << j;
    }
  }
  const double seconds = platform::seconds_since(begin);
  EXPECT_GE(static_cast<double>(good), 3 + 2 * (seconds - 1.5) - 1) << seconds;
  EXPECT_LE(gateway::resident_bytes(), before_memory + kGrowth);
}

}  // namespace
}  // namespace troika::daemon
