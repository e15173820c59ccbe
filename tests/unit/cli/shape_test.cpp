// The configuration that a cluster on this machine is started with is what the daemons read.
#include "cli/local/shape.hpp"

#include <gtest/gtest.h>

#include "config/agent.hpp"
#include "config/cluster.hpp"

namespace troika::local {
namespace {

const Layout kLayout{"/tmp/troika-demo.abcdef"};
const Programs kPrograms{"/b/troikad", "/b/troika-agent", "/b/troika-keeper", "/b/troika-stage"};

TEST(LocalShape, TwoReplicasOfThreeStagesOnSixNodes) {
  const Shape shape;
  EXPECT_EQ(layers_of(shape), 43u);
  EXPECT_EQ(node_names(shape), (std::vector<std::string>{"n1", "n2", "n3", "n4", "n5", "n6"}));
  EXPECT_EQ(nodes_of(shape, "b"), (std::vector<std::string>{"n4", "n5", "n6"}));
}

TEST(LocalShape, TheLeadersConfigurationIsGood) {
  for (const std::vector<std::uint32_t>& layers : {std::vector<std::uint32_t>{14, 14, 15}, {3, 3}}) {
    Shape shape;
    shape.layers = layers;
    const auto block = PortBlock::reserve();
    ASSERT_TRUE(block.ok());
    const Ports ports = ports_of(shape, *block);
    const auto loaded = config::parse_cluster(cluster_toml(shape, kLayout, ports), "cluster.toml");
    for (const auto& problem : loaded.problems)
      ADD_FAILURE() << problem.message();
    ASSERT_TRUE(loaded.config);
    EXPECT_EQ(loaded.config->gateway.listen.port, ports.gateway);
    EXPECT_EQ(loaded.config->replicas[1].nodes, nodes_of(shape, "b"));
    EXPECT_EQ(loaded.config->admission.rate, 0.10);
  }
}

TEST(LocalShape, EveryAgentsConfigurationIsGoodAndMarksItsStages) {
  Shape shape;
  shape.stage_environment["SLOW"] = "a \"b\" \\";
  const auto block = PortBlock::reserve();
  ASSERT_TRUE(block.ok());
  const Ports ports = ports_of(shape, *block);
  for (const std::string& node : node_names(shape)) {
    const auto loaded = config::parse_agent(agent_toml(shape, kLayout, ports, kPrograms, node), "agent.toml");
    for (const auto& problem : loaded.problems)
      ADD_FAILURE() << problem.message();
    ASSERT_TRUE(loaded.config);
    EXPECT_EQ(loaded.config->node, node);
    ASSERT_EQ(loaded.config->engines.size(), 1u);
    EXPECT_EQ(loaded.config->engines[0].environment.at("TROIKA_DEMO"), kLayout.root);
    EXPECT_EQ(loaded.config->engines[0].environment.at("SLOW"), "a \"b\" \\");
    EXPECT_EQ(loaded.config->engines[0].link.port, ports.nodes.at(node).link);
  }
}

TEST(LocalPorts, TwoBlocksNeverShareAPort) {
  const auto one = PortBlock::reserve();
  const auto two = PortBlock::reserve();
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->port(0), two->port(0));
  EXPECT_TRUE(one->busy().empty());
}

}  // namespace
}  // namespace troika::local
