// Ten thousand requests in a few seconds: exactly as many pass as the rate allows, and the gateway's memory
// stays flat.
#include <cmath>
#include <iostream>
#include <thread>

#include "platform/clock.hpp"
#include "platform/sqlite.hpp"
#include "tests/cluster/cluster.hpp"

namespace troika::local {
namespace {

constexpr std::size_t kRequests = 10'000;
constexpr std::size_t kClients = 4;
constexpr double kRate = 2;  // a second, burst 1
#if defined(TROIKA_SANITIZED)
constexpr Bytes kFlat{1u << 30};  // a sanitizer keeps what was freed
#else
constexpr Bytes kFlat{
    24u << 20};  // what the allocator may round and keep; a leak of 1 KiB a request is 10 MB
#endif

struct Count {
  std::size_t passed = 0;
  std::size_t refused = 0;
  std::string strange;  // first answer that is neither
};

void flood(const LocalCluster& cluster, std::size_t requests, Count& count) {
  const auto ask = demo::completion(cluster.shape().model, "Hello", 1, false);
  for (std::size_t i = 0; i < requests; ++i) {
    const auto reply = cluster.ask(ask);
    if (reply.ok() && reply->status == 200 && reply->complete)
      ++count.passed;
    else if (reply.ok() && reply->status == 429 && reply->headers.contains("retry-after"))
      ++count.refused;
    else if (count.strange.empty())
      count.strange =
          reply.ok() ? std::to_string(reply->status) + " " + reply->body : reply.error().message();
  }
}

Count flood_by_many(const LocalCluster& cluster) {
  std::vector<Count> counts(kClients);
  std::vector<std::thread> clients;
  for (Count& count : counts)
    clients.emplace_back([&] { flood(cluster, kRequests / kClients, count); });
  for (std::thread& client : clients)
    client.join();
  Count sum;
  for (const Count& count : counts) {
    sum.passed += count.passed;
    sum.refused += count.refused;
    if (sum.strange.empty()) sum.strange = count.strange;
  }
  return sum;
}

class Flood : public ClusterTest {
 protected:
  // Requests that the stages took in; canaries among them.
  double stage_requests() const {
    double sum = 0;
    for (const char* const name : {"a", "b"}) {
      const auto one = demo::stage_counter(*cluster_, name, "troika_stage_requests_total");
      EXPECT_TRUE(one.ok()) << one.error().message();
      if (one.ok()) sum += *one;
    }
    return sum;
  }

  std::int64_t ledger_rows() const {
    auto database = platform::Database::open(cluster_->layout().leader_state() + "/gateway.sqlite",
                                             platform::Database::Mode::ReadOnly);
    EXPECT_TRUE(database.ok()) << database.error().message();
    if (!database.ok()) return -1;
    auto statement = database->prepare("SELECT count(*) FROM requests");
    EXPECT_TRUE(statement.ok());
    const auto row = statement->step();
    EXPECT_TRUE(row.ok() && *row);
    return statement->integer(0);
  }
};

TEST_F(Flood, AdmitsExactlyWhatTheRateAllowsInFlatMemory) {
  Options options = tiny_cluster();
  options.shape.rate = "2";
  options.shape.burst = 1;
  make(options);
  start();
  serve();
  const auto gateway = static_cast<pid_t>(status().gateway.pid);
  Count warmup;
  flood(*cluster_, 500, warmup);  // buffers and caches reach their size
  const double stages_before = stage_requests();
  const std::int64_t ledger_before = ledger_rows();
  const Bytes memory_before = resident(gateway);

  const Instant began = platform::now();
  const Count count = flood_by_many(*cluster_);
  const double lasted_s = platform::seconds_since(began);
  const Bytes memory_after = resident(gateway);
  std::cout << kRequests << " requests in " << lasted_s << " s: " << count.passed << " passed, "
            << count.refused << " refused; gateway " << (memory_before.count >> 10) << " KiB before, "
            << (memory_after.count >> 10) << " KiB after\n";

  EXPECT_EQ(count.strange, "");
  EXPECT_EQ(count.passed + count.refused, kRequests);
  // At most burst + rate * w in any interval w; and as the flood always has one at the door, not much of the
  // rate is wasted (half, for a machine that is busy with other things).
  EXPECT_LE(static_cast<double>(count.passed), 1 + kRate * lasted_s);
  EXPECT_GE(static_cast<double>(count.passed), std::floor(kRate * lasted_s / 2) - 1);
  EXPECT_EQ(ledger_rows() - ledger_before, static_cast<std::int64_t>(count.passed));
  EXPECT_EQ(stage_requests() - stages_before, static_cast<double>(count.passed));
  EXPECT_LE(memory_after.count, memory_before.count + kFlat.count);
  end();
}

// The promise holds across a restart of the gateway: the ledger remembers.
TEST_F(Flood, AKilledGatewayDoesNotForgetWhatItAdmitted) {
  Options options = tiny_cluster();
  options.shape.rate = "0.02";  // one in 50 s
  options.shape.burst = 1;
  make(options);
  start();
  serve();
  const Instant began = platform::now();
  EXPECT_TRUE(ask(1).whole());
  const auto before = status();
  kill(static_cast<pid_t>(before.gateway.pid));
  wait("another gateway", [&](const auto& s) {
    return s.gateway.connected && s.gateway.pid != before.gateway.pid && !demo::routed(s).empty();
  });
  const auto refused = ask(1);
  if (platform::seconds_since(began) < 50) {
    ASSERT_TRUE(refused.reply);
    EXPECT_EQ(refused.reply->status, 429u) << demo::described(refused);
  }
  end();
}

}  // namespace
}  // namespace troika::local
