// cluster.toml: ranges, and figures that contradict one another.
#include "config/cluster.hpp"

#include <gtest/gtest.h>

#include "tests/unit/config/example.hpp"

namespace troika::config {
namespace {

using namespace std::chrono_literals;

TEST(Cluster, TheExampleIsReadWhole) {
  const auto loaded = parse_cluster(kCluster, "cluster.toml");
  ASSERT_TRUE(loaded.config.has_value()) << loaded.problems[0].message();
  const ClusterConfig& c = *loaded.config;
  EXPECT_EQ(c.cluster, "lab");
  EXPECT_EQ(c.leader.listen, (Endpoint{"0.0.0.0", 7443}));
  EXPECT_EQ(c.leader.socket, "/run/troika/control.sock");
  EXPECT_EQ(c.leader.key, "/etc/troika/pki/leader.key");
  EXPECT_EQ(c.gateway.metrics, (Endpoint{"127.0.0.1", 9464}));
  EXPECT_EQ(c.model.name, "deepseek-v4-flash");
  EXPECT_EQ(c.model.layers, 43u);
  EXPECT_EQ(c.engine.kind, EngineKind::Sglang);
  EXPECT_EQ(c.engine.chunked_prefill, Tokens{4096});
  EXPECT_EQ(c.engine.memory_fraction, 0.5);
  EXPECT_EQ(c.admission.rate, 0.1);
  EXPECT_EQ(c.admission.queue_wait, 60s);
  EXPECT_EQ(c.fabric.topology, "ring3");
  EXPECT_EQ(c.fabric.link_gbps_expected, 190);
  EXPECT_EQ(c.memory.reserve, Bytes{16ull << 30});
  EXPECT_EQ(c.memory.floor, Bytes{4ull << 30});
  EXPECT_EQ(c.restart.window, 30min);
  EXPECT_EQ(c.failover, FailoverMode::ActiveStandby);
  ASSERT_EQ(c.nodes.size(), 6u);
  EXPECT_EQ(c.nodes[5].name, "spark-6");
  ASSERT_EQ(c.replicas.size(), 2u);
  EXPECT_EQ(c.replicas[1].name, "b");
  EXPECT_EQ(c.replicas[1].layers, (std::vector<std::uint32_t>{14, 14, 15}));
  EXPECT_EQ(c.replicas[1].nodes, (std::vector<std::string>{"spark-4", "spark-5", "spark-6"}));
}

TEST(Cluster, DefaultsAreThoseOfTheHeader) {
  const auto loaded = parse_cluster(R"(
[cluster]
name = "x"
[model]
name = "m"
path = "/m"
manifest = "/m.json"
[[node]]
name = "n"
[[replica]]
name = "a"
layers = [43]
nodes = ["n"]
)",
                                    "cluster.toml");
  ASSERT_TRUE(loaded.config.has_value()) << loaded.problems[0].message();
  EXPECT_EQ(loaded.config->leader.listen, LeaderConfig{}.listen);
  EXPECT_EQ(loaded.config->admission.rate, AdmissionConfig{}.rate);
  EXPECT_EQ(loaded.config->memory.reserve, MemoryConfig{}.reserve);
}

const Wrong kWrongCluster[] = {
    {"name = \"lab\"", "name = \"Lab\"", "cluster.name", "\"Lab\"", "1 to 63 of a-z, 0-9 and '-'"},
    {"\"0.0.0.0:7443\"", "\"0.0.0.0\"", "leader.listen", "\"0.0.0.0\"", "host:port is expected"},
    {"\"0.0.0.0:7443\"", "\"0.0.0.0:0\"", "leader.listen", "\"0.0.0.0:0\"", "port 1 to 65535"},
    {"\"0.0.0.0:7443\"", "\"0.0.0.0:65536\"", "leader.listen", "\"0.0.0.0:65536\"", "port 1 to 65535"},
    {"\"0.0.0.0:7443\"", "\"0.0.0.256:7443\"", "leader.listen", "\"0.0.0.256:7443\"",
     "host:port is expected"},
    {"\"/run/troika/control.sock\"", "\"control.sock\"", "leader.socket", "\"control.sock\"",
     "absolute path"},
    {"\"/var/lib/troika\"", "\"var\"", "leader.state_dir", "\"var\"", "absolute path"},
    {"\"/var/lib/troika\"", "\"/var\\u0000x\"", "leader.state_dir", "\"/var\\u0000x\"",
     "without the character NUL"},
    {"\"/etc/troika/pki/ca.crt\"", "\"ca\"", "leader.ca", "\"ca\"", "absolute path"},
    {"\"/etc/troika/pki/leader.crt\"", "\"crt\"", "leader.certificate", "\"crt\"", "absolute path"},
    {"\"/etc/troika/pki/leader.key\"", "\"k\"", "leader.key", "\"k\"", "absolute path"},
    {"backend = \"static\"", "backend = \"etcd\"", "election.backend", "\"etcd\"",
     "\"static\" is expected: this version"},
    {"backend = \"static\"", "backend = \"raft\"", "election.backend", "\"raft\"", "\"static\" is expected"},
    {"backend = \"static\"", "ttl = \"3s\"", "election.ttl", "\"3s\"", "only backend = \"etcd\""},
    {"backend = \"static\"", "endpoints = [\"e:1\"]", "election.endpoints", "[\"e:1\"]",
     "only backend = \"etcd\""},
    {"\"127.0.0.1:9464\"", "\"0.0.0.0:8080\"", "gateway.metrics", "\"0.0.0.0:8080\"",
     "another port is expected; gateway.listen = 0.0.0.0:8080 has this one"},
    // An address of the machine and all of them.
    {"\"127.0.0.1:9464\"", "\"127.0.0.1:8080\"", "gateway.metrics", "\"127.0.0.1:8080\"",
     "another port is expected; gateway.listen = 0.0.0.0:8080"},
    {"\"127.0.0.1:9464\"", "\"[::]:8080\"", "gateway.metrics", "\"[::]:8080\"", "another port is expected"},
    {"\"127.0.0.1:9464\"", "\"127.0.0.1:7443\"", "gateway.metrics", "\"127.0.0.1:7443\"",
     "another port is expected; leader.listen = 0.0.0.0:7443"},
    {"\"0.0.0.0:8080\"", "\"0.0.0.0:7443\" ", "gateway.listen", "\"0.0.0.0:7443\"",
     "another port is expected; leader.listen = 0.0.0.0:7443"},
    {"\"deepseek-v4-flash\"", "\"deep seek\"", "model.name", "\"deep seek\"", "letters, digits"},
    {"\"/srv/models/deepseek-v4-flash-nvfp4\"", "\"x\"", "model.path", "\"x\"", "absolute path"},
    {"layers = 43", "layers = 0", "model.layers", "0", "a whole number from 1 to 1024"},
    {"layers = 43", "layers = 1025", "model.layers", "1025", "a whole number from 1 to 1024"},
    {"layers = 43", "layers = 43.0", "model.layers", "43.0", "a whole number"},
    {"kind = \"sglang\"", "kind = \"sgland\"", "engine.kind", "\"sgland\"",
     "one of native, sglang, vllm, trtllm, llamacpp, external"},
    {"context_length = 12288", "context_length = 0", "engine.context_length", "0", "a whole number from 1"},
    {"context_length = 12288", "context_length = 16777217", "engine.context_length", "16777217",
     "to 16777216"},
    {"chunked_prefill = 4096", "chunked_prefill = 12289", "engine.chunked_prefill", "12289",
     "at most engine.context_length = 12288"},
    {"decode_graph_batch = 4", "decode_graph_batch = 0", "engine.decode_graph_batch", "0",
     "a whole number from 1"},
    {"memory_fraction = 0.50", "memory_fraction = 1.01", "engine.memory_fraction", "1.01",
     "a number above 0, at most 1,"},
    {"memory_fraction = 0.50", "memory_fraction = 0", "engine.memory_fraction", "0", "a number above 0"},
    {"memory_fraction = 0.50", "memory_fraction = nan", "engine.memory_fraction", "nan", "a number above 0"},
    {"max_running = 8", "max_running = 0", "engine.max_running", "0", "a whole number from 1"},
    // Mode 55: with one request a micro-batch, pipelines with chunked prefill hang.
    {"max_running = 8", "max_running = 5", "engine.max_running", "5", "MICRO_BATCH_ONE: at least 6"},
    {"rate = 0.10", "rate = 0", "admission.rate", "0", "a number from 1e-05 to 10000"},
    {"rate = 0.10", "rate = -0.5", "admission.rate", "-0.5", "a number from 1e-05 to 10000"},
    {"rate = 0.10", "rate = inf", "admission.rate", "inf", "a number from 1e-05 to 10000"},
    {"rate = 0.10", "rate = \"fast\"", "admission.rate", "\"fast\"", "a number from 1e-05 to 10000"},
    // Below one request in a day nothing would be served.
    {"rate = 0.10", "rate = 1e-300", "admission.rate", "1e-300", "a number from 1e-05 to 10000"},
    {"burst = 1", "burst = 0", "admission.burst", "0", "a whole number from 1"},
    {"in_flight = 8", "in_flight = 0", "admission.in_flight", "0", "a whole number from 1"},
    {"prompt_cap = 8192", "prompt_cap = 12289", "admission.prompt_cap", "12289",
     "at most admission.window = 12288"},
    {"window = 12288", "window = 12289", "admission.window", "12289",
     "at most engine.context_length = 12288"},
    {"window = 12288", "window = 8191", "admission.prompt_cap", "8192", "at most admission.window = 8191"},
    {"queue = 0", "queue = 70000", "admission.queue", "70000", "a whole number from 0 to 65536"},
    {"queue_wait = \"60s\"", "queue_wait = 60", "admission.queue_wait", "60", "a duration"},
    {"queue_wait = \"60s\"", "queue_wait = \"60 s\"", "admission.queue_wait", "\"60 s\"", "a duration"},
    {"queue_wait = \"60s\"", "queue_wait = \"0s\"", "admission.queue_wait", "\"0s\"",
     "at least 1ms, at most 1d"},
    {"queue_wait = \"60s\"", "queue_wait = \"25h\"", "admission.queue_wait", "\"25h\"", "at most 1d"},
    {"queue_wait = \"60s\"", "queue_wait = \"99999999999d\"", "admission.queue_wait", "\"99999999999d\"",
     "at most 1d"},
    {"topology = \"ring3\"", "topology = \"ring5\"", "fabric.topology", "\"ring5\"",
     "one of pair, ring3, ring4, line, switch"},
    {"topology = \"ring3\"", "topology = \"pair\"", "replica[0].nodes",
     "[\"spark-1\", \"spark-2\", \"spark-3\"]", "2 nodes are expected"},
    {"min = 184", "min = 0", "fabric.link_gbps.min", "0", "a number above 0"},
    {"min = 184", "min = 191", "fabric.link_gbps.min", "191", "at most fabric.link_gbps.expected"},

    {"reserve = \"16GiB\"", "reserve = \"16GB\"", "memory.reserve", "\"16GB\"", "a size is expected"},
    {"reserve = \"16GiB\"", "reserve = \"17TiB\"", "memory.reserve", "\"17TiB\"", "at most 16TiB"},
    {"reserve = \"16GiB\"", "reserve = 1.5", "memory.reserve", "1.5", "a size is expected"},
    {"floor = \"4GiB\"", "floor = \"16GiB\"", "memory.floor", "\"16GiB\"", "below memory.reserve"},
    {"attempts = 1", "attempts = 11", "restart.attempts", "11", "a whole number from 0 to 10"},
    {"window = \"30m\"", "window = \"30\"", "restart.window", "\"30\"", "a duration"},
    {"window = \"30m\"", "window = \"400d\"", "restart.window", "\"400d\"", "at most 365d"},
    {"mode = \"active-standby\"", "mode = \"standby\"", "failover.mode", "\"standby\"",
     "one of active-standby, active-active"},
    {"name = \"spark-2\"", "name = \"spark-1\" ", "node[1].name", "\"spark-1\"", "a name of its own"},
    {"name = \"spark-2\"", "name = \"-spark\"", "node[1].name", "\"-spark\"", "1 to 63"},
    {"name = \"b\"", "name = \"a\" ", "replica[1].name", "\"a\"", "replica[0].name has this one"},
    {"layers = [14, 14, 15]", "layers = [14, 14, 14]", "replica[0].layers", "[14, 14, 14]",
     "they add up to 42"},
    {"layers = [14, 14, 15]", "layers = [14, 29]", "replica[0].layers", "[14, 29]",
     "one number for each of the 3 nodes"},
    {"layers = [14, 14, 15]", "layers = [43, 0, 0]", "replica[0].layers[1]", "0", "a whole number from 1"},
    {"layers = [14, 14, 15]", "layers = \"43\"", "replica[0].layers", "\"43\"", "a list of whole numbers"},
    {"\"spark-4\", \"spark-5\"", "\"spark-3\", \"spark-5\"", "replica[1].nodes[0]", "\"spark-3\"",
     "replica[0].nodes[2] is there"},
    {"\"spark-1\", \"spark-2\"", "\"spark-2\", \"spark-2\"", "replica[0].nodes[1]", "\"spark-2\"",
     "replica[0].nodes[0] is there"},
    {"\"spark-1\", \"spark-2\"", "\"spark-9\", \"spark-2\"", "replica[0].nodes[0]", "\"spark-9\"",
     "the name of a [[node]]"},
    {"nodes = [\"spark-4\"", "url = \"http://a:1\"\nnodes = [\"spark-4\"", "replica[1].url", "\"http://a:1\"",
     "only engine.kind = \"external\""},
};

TEST(Cluster, EachWrongValueIsNamed) {
  for (const Wrong& wrong : kWrongCluster) {
    const std::string text = replaced(kCluster, wrong.from, wrong.to);
    const auto loaded = parse_cluster(text, "cluster.toml");
    SCOPED_TRACE(wrong.to);
    EXPECT_FALSE(loaded.config.has_value());
    const Problem* found = nullptr;
    for (const Problem& problem : loaded.problems)
      if (found == nullptr && problem.key == wrong.key) found = &problem;
    ASSERT_NE(found, nullptr) << loaded.problems[0].message();
    EXPECT_EQ(found->file, "cluster.toml");
    EXPECT_EQ(found->value, wrong.value);
    EXPECT_NE(found->message().find(wrong.expected), std::string::npos) << found->message();
    // The place is right when the text has the value there.
    const std::string line = split(text)[found->line - 1];
    EXPECT_EQ(line.substr(found->column - 1, wrong.value.size()), wrong.value) << found->message();
  }
}

// The key and its value stand before the colon already.
TEST(Cluster, AValueIsSaidOnce) {
  const auto told = [](const std::string& from, const std::string& to) {
    const auto loaded = parse_cluster(replaced(kCluster, from, to), "c");
    return loaded.problems.empty() ? std::string("good") : loaded.problems[0].message();
  };
  EXPECT_EQ(told("prompt_cap = 8192 ", "prompt_cap = 99999"),
            "c:37:14: admission.prompt_cap = 99999: at most admission.window = 12288 is expected");
  EXPECT_EQ(told("prompt_cap = 8192                # tokens\nwindow = 12288", "window = 1000"),
            "c:37:10: admission.window = 1000: at least admission.prompt_cap = 8192 is expected");
}

TEST(Cluster, PathsAreWithinTheSystemsLimits) {
  const auto problems = [](const std::string& path) {
    return parse_cluster(replaced(kCluster, "/var/lib/troika", path), "c").problems;
  };
  std::string deep;
  while (deep.size() < 3500)
    deep += "/" + std::string(99, 'x');
  EXPECT_TRUE(problems(deep).empty());
  for (const std::string& path : {deep + deep, "/" + std::string(256, 'x')}) {
    ASSERT_EQ(problems(path).size(), 1u);
    EXPECT_EQ(problems(path)[0].key, "leader.state_dir");
    EXPECT_EQ(problems(path)[0].expected,
              "a path of at most 3584 bytes is expected, each name in it of 255 at most");
  }
}

// Editors of other systems write one; the places of problems are those of the text after it.
TEST(Cluster, AByteOrderMarkIsNoPartOfTheText) {
  EXPECT_TRUE(parse_cluster("\xEF\xBB\xBF" + std::string(kCluster), "c").config.has_value());
  const auto loaded = parse_cluster("\xEF\xBB\xBF[cluster]\nname = 1\n", "c");
  ASSERT_FALSE(loaded.problems.empty());
  bool seen = false;
  for (const Problem& problem : loaded.problems)
    seen = seen || (problem.key == "cluster.name" && problem.line == 2 && problem.value == "1");
  EXPECT_TRUE(seen);
}

TEST(Cluster, ALongSocketPathIsNamed) {
  const std::string path = "\"/" + std::string(107, 'x') + "\"";
  const auto loaded = parse_cluster(replaced(kCluster, "\"/run/troika/control.sock\"", path), "c");
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(loaded.problems[0].expected, "at most 107 bytes are allowed for a socket's path");
}

// Only sglang hangs so, and only with more than one rank.
TEST(Cluster, SmallMicroBatchesOfOtherEnginesAreFine) {
  const std::string text = replaced(kCluster, "max_running = 8", "max_running = 3");
  EXPECT_TRUE(parse_cluster(replaced(text, "\"sglang\"", "\"native\""), "c").config.has_value());
  EXPECT_FALSE(parse_cluster(text, "c").config.has_value());
}

TEST(Cluster, EachEngineKindIsAccepted) {
  for (const char* kind : {"native", "sglang", "vllm", "trtllm", "llamacpp"}) {
    const auto loaded = parse_cluster(replaced(kCluster, "\"sglang\"", "\"" + std::string(kind) + "\""), "c");
    ASSERT_TRUE(loaded.config.has_value()) << kind;
    EXPECT_EQ(name(loaded.config->engine.kind), kind);
  }
}

constexpr std::string_view kExternal = R"([cluster]
name = "x"
[model]
name = "m"
[engine]
kind = "external"
[[replica]]
name = "a"
url = "http://10.0.0.1:8000"
[[replica]]
name = "b"
url = "http://10.0.0.2:8000"
)";

TEST(Cluster, ExternalReplicasHaveAUrl) {
  const auto loaded = parse_cluster(kExternal, "c");
  ASSERT_TRUE(loaded.config.has_value()) << loaded.problems[0].message();
  EXPECT_EQ(loaded.config->replicas[1].url, "http://10.0.0.2:8000");
  const auto refused = [](const std::string& from, const std::string& to) {
    const auto wrong = parse_cluster(replaced(kExternal, from, to), "c");
    return wrong.problems.empty() ? std::string("good") : wrong.problems[0].message();
  };
  EXPECT_EQ(refused("url = \"http://10.0.0.1:8000\"", "url = \"https://x:1\""),
            "c:9:7: replica[0].url = \"https://x:1\": http://host:port is expected");
  EXPECT_EQ(refused("url = \"http://10.0.0.1:8000\"\n", ""),
            "c:7:1: replica[0].url is missing: a text in quotes is expected");
  EXPECT_EQ(refused("url = \"http://10.0.0.1:8000\"", "url = \"http://10.0.0.1:8000\"\nlayers = [1]"),
            "c:10:10: replica[0].layers = [1]: engine.kind = \"external\" has url in place of layers");
}

TEST(Cluster, APlainNumberOfBytesAndNoFloorAreFine) {
  const std::string text = replaced(replaced(kCluster, "\"16GiB\"", "1048576"), "\"4GiB\"", "0");
  const auto loaded = parse_cluster(text, "c");
  ASSERT_TRUE(loaded.config.has_value()) << loaded.problems[0].message();
  EXPECT_EQ(loaded.config->memory.reserve, Bytes{1u << 20});
  EXPECT_EQ(loaded.config->memory.floor, Bytes{});
}

TEST(Cluster, AKeyOfAnInlineTableIsChecked) {
  const auto loaded = parse_cluster(replaced(kCluster, "expected = 190", "expekted = 190"), "c");
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(loaded.problems[0].key, "fabric.link_gbps.expekted");
  EXPECT_EQ(loaded.problems[0].value, "190");
  EXPECT_EQ(loaded.problems[0].expected, "no such key; did you mean \"expected\"?");
}

// toml++ asserts on it instead of refusing it.
TEST(Cluster, ADottedKeyWithoutItsEndHasItsLine) {
  for (const char* text : {"[cluster]\nname = \"x\"\n\na. = 1\n", "[cluster]\nname = \"x\"\n\n[a.\n",
                           "[cluster]\nname = \"x\"\n\nb = { a. = 1 }"}) {
    const auto loaded = parse_cluster(text, "c");
    ASSERT_EQ(loaded.problems.size(), 1u);
    EXPECT_EQ(loaded.problems[0].line, 4u) << loaded.problems[0].message();
  }
}

TEST(Cluster, ASyntaxErrorHasItsPlace) {
  const auto loaded = parse_cluster("[cluster]\nname = \n", "/etc/troika/cluster.toml");
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_TRUE(loaded.problems[0].message().starts_with("/etc/troika/cluster.toml:2:"))
      << loaded.problems[0].message();
}

TEST(Cluster, AFileThatCannotBeReadIsNamed) {
  const auto refused = [](const std::string& path) {
    const auto loaded = load_cluster(path);
    EXPECT_FALSE(loaded.config.has_value());
    return loaded.problems.empty() ? "" : loaded.problems[0].message();
  };
  EXPECT_EQ(refused("/no/such.toml"), "/no/such.toml: cannot be read: No such file or directory");
  EXPECT_EQ(refused("/"), "/: cannot be read: not a regular file");
  EXPECT_EQ(refused("/dev/zero"), "/dev/zero: cannot be read: not a regular file");
}

// Columns count characters; what is shown is whole characters.
TEST(Cluster, ValuesInOtherScriptsAreShownWhole) {
  const auto loaded = parse_cluster("[cluster]\n\"ключ\" = \"значение\"\nname = \"Ω\"\n", "c");
  ASSERT_GE(loaded.problems.size(), 2u);
  bool name = false, key = false;
  for (const Problem& problem : loaded.problems) {
    name = name || (problem.key == "cluster.name" && problem.value == "\"Ω\"");
    key = key || (problem.key == "cluster.ключ" && problem.value == "\"значение\"");
  }
  EXPECT_TRUE(name);
  EXPECT_TRUE(key);
}

}  // namespace
}  // namespace troika::config
