#include <gtest/gtest.h>

#include <sstream>

#include "cli/render.hpp"
#include "tests/unit/cli/status_example.hpp"

namespace troika::cli {
namespace {

TEST(RenderStatus, TheWholeClusterOnOneScreen) {
  EXPECT_EQ(render_status(status_example(), Style{}),
            "cluster lab  leader pid 1234, term 3, version 0.1.0\n"
            "\n"
            "REPLICA  WANTED   PHASE    FOR    EPOCH  PROVEN            SHARDS  NEXT REQUEST  WHY\n"
            "a        running  serving  3m10s  2      yes               92      here\n"
            "b        running  failed   4.0s   none   no, breaker open  0                     verification "
            "failed on n3\n"
            "\n"
            "STAGE  NODE  STATE    EPOCH  PID  LAYERS  LOADED            DETAIL\n"
            "a/0    n1    ready    2      501  0-13    12.0 of 12.0 MiB\n"
            "a/1    n2    ready    2      502  14-28   13.0 of 13.0 MiB\n"
            "b/0    n3    stopped  none        0-13\n"
            "b/1    n4    unknown  none        14-28   unknown\n"
            "\n"
            "NODE  HEARD      MEMORY FREE       STALLED  LINKS                     VERSION  VERIFYING\n"
            "n1    0.3s ago   20.0 of 24.0 GiB  0.2%     eth0 up 200 Gb/s no RDMA  0.1.0\n"
            "n2    0.5s ago   20.0 of 24.0 GiB  0.2%     eth0 up 200 Gb/s no RDMA  0.1.0\n"
            "n3    1.2s ago   20.0 of 24.0 GiB  unknown  none told                 0.1.0    b: 12/46 files\n"
            "n4    1m15s ago  unknown           unknown  unknown\n"
            "\n"
            "gateway  http://127.0.0.1:8080, pid 77\n"
            "  next request  a (epoch 2)\n"
            "  requests      1 in flight, 12 admitted, 3 refused, 11 completed, 0 failed\n"
            "open incidents  none\n"
            "findings\n"
            "    error HASH_MISMATCH n3 model-00002.safetensors: SHA-256 differs from the manifest\n"
            "      do: copy the file again\n");
}

TEST(RenderStatus, NothingHeardIsUnknownNeverItsLastGoodValue) {
  auto status = status_example();
  status.gateway.connected = false;
  status.nodes = {status.nodes[3]};
  status.nodes[0].heartbeat_age_seconds = -1;
  const std::string text = render_status(status, Style{});
  EXPECT_NE(text.find("gateway  unknown: not connected to the leader\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("12 admitted"), std::string::npos) << text;
  EXPECT_NE(text.find("n4    never  unknown      unknown  unknown\n"), std::string::npos) << text;
}

TEST(RenderStatus, OpenIncidentsComeWithTheirRemedyAndAreToldOnce) {
  auto status = status_example();
  protocol::Incident incident{
      5, "2026-11-30T20:27:32.004Z", "", "replica b", "start refused", status.replicas[1].findings, {}};
  status.open_incidents = {incident};
  const std::string text = render_status(status, Style{});
  EXPECT_TRUE(
      text.ends_with("open incidents\n"
                     "  5 2026-11-30T20:27:32.004Z replica b: start refused\n"
                     "    error HASH_MISMATCH n3 model-00002.safetensors: SHA-256 differs from the manifest\n"
                     "      do: copy the file again\n"))
      << text;
}

TEST(RenderStatus, WithoutATargetTheReasonIsTold) {
  auto status = status_example();
  status.gateway.targets.clear();
  status.gateway.reason = "no replica is proven";
  EXPECT_NE(render_status(status, Style{}).find("next request  nowhere (no replica is proven)\n"),
            std::string::npos);
}

TEST(RenderStatus, TablesFitTheTerminal) {
  auto status = status_example();
  status.replicas[1].reason = std::string(300, 'x');
  std::istringstream lines(render_status(status, Style{false, 80}));
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(columns(line), 80u) << line;
}

TEST(RenderStatus, RemoteTextCannotSteerTheTerminal) {
  auto status = status_example();
  status.replicas[0].stages[0].detail = "\033]0;owned\007";
  status.nodes[0].version = "\033[2J";
  EXPECT_EQ(render_status(status, Style{}).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace troika::cli
