// agent.toml: ranges, and figures that contradict one another.
#include "config/agent.hpp"

#include <gtest/gtest.h>

#include "tests/unit/config/example.hpp"

namespace troika::config {
namespace {

TEST(Agent, TheExampleIsReadWhole) {
  const auto loaded = parse_agent(kAgent, "agent.toml");
  ASSERT_TRUE(loaded.config.has_value()) << loaded.problems[0].message();
  const AgentConfig& a = *loaded.config;
  EXPECT_EQ(a.cluster, "lab");
  EXPECT_EQ(a.node, "spark-1");
  EXPECT_EQ(a.state_dir, "/var/lib/troika/agent");
  EXPECT_EQ(a.run_dir, "/run/troika/agent");
  EXPECT_EQ(a.keeper, "/usr/lib/troika/troika-keeper");
  EXPECT_EQ(a.leaders, (std::vector<Endpoint>{{"10.0.0.1", 7443}, {"leader-2.lab", 7443}}));
  EXPECT_EQ(a.key, "/etc/troika/pki/agent.key");
  EXPECT_EQ(a.relay_listen, (Endpoint{"0.0.0.0", 7444}));
  EXPECT_EQ(a.relay_advertise, (Endpoint{"10.0.0.11", 7444}));
  EXPECT_EQ(a.model_path, "/srv/models/deepseek-v4-flash-nvfp4");
  EXPECT_EQ(a.proof_max_age, std::chrono::hours{720});
  EXPECT_EQ(a.interfaces, (std::vector<std::string>{"enp1s0f0np0", "enP2p1s0f0np0"}));
  EXPECT_EQ(a.stage_log_limit, Bytes{16u << 20});
  ASSERT_EQ(a.engines.size(), 2u);
  EXPECT_EQ(a.engines[0].kind, EngineKind::Native);
  EXPECT_EQ(a.engines[0].link, (Endpoint{"10.0.1.1", 30100}));
  EXPECT_EQ(a.engines[0].kv_budget, Bytes{8ull << 30});
  EXPECT_EQ(a.engines[0].arguments, (std::vector<std::string>{"--log", "plain"}));
  EXPECT_EQ(a.engines[0].environment.at("OMP_NUM_THREADS"), "4");
  EXPECT_EQ(a.engines[1].kind, EngineKind::Sglang);
  EXPECT_EQ(a.engines[1].api, (Endpoint{"127.0.0.1", 30000}));
}

const Wrong kWrongAgent[] = {
    {"cluster = \"lab\"", "cluster = \"a b\"", "node.cluster", "\"a b\"", "1 to 63"},
    {"name = \"spark-1\"", "name = \"Spark\"", "node.name", "\"Spark\"", "1 to 63"},
    {"\"/var/lib/troika/agent\"", "\"x\"", "node.state_dir", "\"x\"", "absolute path"},
    {"\"/run/troika/agent\"", "\"y\"", "node.run_dir", "\"y\"", "absolute path"},
    {"\"/run/troika/agent\"", "\"/var/lib/troika/agent\" ", "node.run_dir", "\"/var/lib/troika/agent\"",
     "another folder"},
    {"\"/usr/lib/troika/troika-keeper\"", "\"keeper\"", "node.keeper", "\"keeper\"", "absolute path"},
    {"[\"10.0.0.1:7443\", \"leader-2.lab:7443\"]", "[]", "leader.addresses", "[]", "at least one"},
    {"\"leader-2.lab:7443\"", "\"leader-2.lab\"", "leader.addresses[1]", "\"leader-2.lab\"", "host:port"},
    {"\"leader-2.lab:7443\"", "7443", "leader.addresses[1]", "7443", "a text in quotes"},
    {"\"leader-2.lab:7443\"", "\"10.0.0.1:7443\"", "leader.addresses[1]", "\"10.0.0.1:7443\"",
     "in the list already"},
    {"\"leader-2.lab:7443\"", "\"0.0.0.0:7443\"", "leader.addresses[1]", "\"0.0.0.0:7443\"", "one machine"},
    {"\"/etc/troika/pki/ca.crt\"", "\"c\"", "tls.ca", "\"c\"", "absolute path"},
    {"\"/etc/troika/pki/agent.crt\"", "\"c\"", "tls.certificate", "\"c\"", "absolute path"},
    {"\"/etc/troika/pki/agent.key\"", "\"c\"", "tls.key", "\"c\"", "absolute path"},
    {"\"0.0.0.0:7444\"", "\":7444\"", "relay.listen", "\":7444\"", "host:port"},
    {"\"10.0.0.11:7444\"", "\"[::]:7444\"", "relay.advertise", "\"[::]:7444\"",
     "where gateways reach this node"},
    {"\"/srv/models/deepseek-v4-flash-nvfp4\"", "\"m\"", "model.path", "\"m\"", "absolute path"},
    {"proof_max_age = \"720h\"", "proof_max_age = \"366d\"", "model.proof_max_age", "\"366d\"", "at most"},
    {"proof_max_age = \"720h\"", "proof_max_age = 720", "model.proof_max_age", "720", "a duration"},
    {"\"enP2p1s0f0np0\"", "\"enp1s0f0np0\"", "fabric.interfaces[1]", "\"enp1s0f0np0\"",
     "each interface once"},
    {"\"enP2p1s0f0np0\"", "\"../x\"", "fabric.interfaces[1]", "\"../x\"", "a network interface"},
    {"\"enP2p1s0f0np0\"", "\"sixteencharacter\"", "fabric.interfaces[1]", "\"sixteencharacter\"",
     "at most 15 characters"},
    {"stage_limit = \"16MiB\"", "stage_limit = \"1KiB\"", "log.stage_limit", "\"1KiB\"", "at least 64KiB"},
    {"stage_limit = \"16MiB\"", "stage_limit = \"100000TiB\"", "log.stage_limit", "\"100000TiB\"",
     "at least 64KiB, at most 16GiB"},
    {"kind = \"native\"", "kind = \"external\"", "engine[0].kind", "\"external\"",
     "one of native, sglang, vllm, trtllm, llamacpp"},
    {"kind = \"sglang\"", "kind = \"native\" ", "engine[1].kind", "\"native\"",
     "one [[engine]] of each kind"},
    {"\"/usr/lib/troika/troika-stage\"", "\"troika-stage\"", "engine[0].program", "\"troika-stage\"",
     "absolute path"},
    // Engines have no access control: an address that others reach would open the model to everybody.
    {"\"127.0.0.1:30000\"", "\"0.0.0.0:30000\"", "engine[0].api", "\"0.0.0.0:30000\"", "a loopback address"},
    {"\"127.0.0.1:30000\"", "\"10.0.0.1:30000\"", "engine[0].api", "\"10.0.0.1:30000\"",
     "a loopback address"},
    {"\"127.0.0.1:30000\"", "\"[::]:30000\"", "engine[0].api", "\"[::]:30000\"", "a loopback address"},
    {"\"127.0.0.1:30000\"", "\"127.0.0.1.example.org:30000\"", "engine[0].api",
     "\"127.0.0.1.example.org:30000\"", "a loopback address"},
    {"\"10.0.1.1:30100\"", "\"0.0.0.0:30100\"", "engine[0].link", "\"0.0.0.0:30100\"",
     "where the stage before"},
    {"\"10.0.1.1:30100\"", "\"127.0.0.1:30000\" ", "engine[0].link", "\"127.0.0.1:30000\"",
     "another address than api"},
    {"\"10.0.1.1:30100\"", "\"10.0.1.1:7444\"", "engine[0].link", "\"10.0.1.1:7444\"",
     "another port is expected; relay.listen = 0.0.0.0:7444 has this one"},
    {"\"127.0.0.1:30000\"", "\"127.0.0.1:7444\"", "engine[0].api", "\"127.0.0.1:7444\"",
     "another port is expected; relay.listen = 0.0.0.0:7444 has this one"},
    {"\"0.0.0.0:7444\"", "\"0.0.0.0:30000\"", "engine[0].api", "\"127.0.0.1:30000\"",
     "another port is expected; relay.listen = 0.0.0.0:30000 has this one"},
    // Less than one token may need.
    {"kv_budget = \"8GiB\"", "kv_budget = 5", "engine[0].kv_budget", "5",
     "at least 1MiB, at most 16TiB; or 0"},
    {"kv_budget = \"8GiB\"", "kv_budget = -1", "engine[0].kv_budget", "-1", "a size is expected"},
    {"[\"--log\", \"plain\"]", "[\"--log\", 3]", "engine[0].arguments[1]", "3", "a text in quotes"},
    // Mode 70: an empty variable is not an unset one.
    {"\"4\"", "\"\"", "engine[0].environment.OMP_NUM_THREADS", "\"\"", "ENV_EMPTY: a value is expected"},
    {"\"4\"", "\"a\\u0000b\"", "engine[0].environment.OMP_NUM_THREADS", "\"a\\u0000b\"",
     "without the character NUL (\\u0000)"},
    {"\"4\"", "4", "engine[0].environment.OMP_NUM_THREADS", "4", "a text in quotes"},
    {"OMP_NUM_THREADS", "\"A=B\"", "engine[0].environment.A=B", "\"4\"", "a variable's name"},
};

TEST(Agent, EachWrongValueIsNamed) {
  for (const Wrong& wrong : kWrongAgent) {
    const std::string text = replaced(kAgent, wrong.from, wrong.to);
    const auto loaded = parse_agent(text, "agent.toml");
    SCOPED_TRACE(wrong.to);
    EXPECT_FALSE(loaded.config.has_value());
    const Problem* found = nullptr;
    for (const Problem& problem : loaded.problems)
      if (found == nullptr && problem.key == wrong.key) found = &problem;
    ASSERT_NE(found, nullptr) << (loaded.problems.empty() ? "no problem" : loaded.problems[0].message());
    EXPECT_EQ(found->file, "agent.toml");
    EXPECT_EQ(found->value, wrong.value);
    EXPECT_NE(found->message().find(wrong.expected), std::string::npos) << found->message();
    const std::string line = split(text)[found->line - 1];
    EXPECT_EQ(line.substr(found->column - 1, wrong.value.size()), wrong.value) << found->message();
  }
}

// Every address of a machine is none that another machine could dial.
TEST(Agent, AWildcardRelayNeedsAnAddressToTell) {
  const std::string line = "advertise = \"10.0.0.11:7444\"\n";
  for (const char* listen : {"0.0.0.0:7444", "[::]:7444"}) {
    const auto loaded = parse_agent(replaced(replaced(kAgent, line, ""), "0.0.0.0:7444", listen), "a");
    ASSERT_EQ(loaded.problems.size(), 1u) << listen;
    EXPECT_EQ(
        loaded.problems[0].message(),
        "a:16:1: relay.advertise is missing: the address where gateways reach this node is expected, as "
        "relay.listen = " +
            std::string(listen) + " is none");
  }
  EXPECT_TRUE(parse_agent(replaced(replaced(kAgent, line, ""), "0.0.0.0:7444", "10.0.0.11:7444"), "a")
                  .config.has_value());
  // Without a table the usual address is in force.
  const std::string none = replaced(replaced(kAgent, line, ""), "[relay]\nlisten = \"0.0.0.0:7444\"\n", "");
  const auto loaded = parse_agent(none, "a");
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(loaded.problems[0].key, "relay.advertise");
}

TEST(Agent, AnEngineMayChooseItsCacheItself) {
  EXPECT_TRUE(parse_agent(replaced(kAgent, "\"8GiB\"", "0"), "a").config.has_value());
  EXPECT_TRUE(parse_agent(replaced(kAgent, "\"8GiB\"", "\"1MiB\""), "a").config.has_value());
}

TEST(Agent, LoopbackHasThreeNames) {
  for (const char* api : {"127.0.0.2:1", "[::1]:1", "localhost:1"})
    EXPECT_TRUE(parse_agent(replaced(kAgent, "127.0.0.1:30000", api), "a").config.has_value()) << api;
}

}  // namespace
}  // namespace troika::config
