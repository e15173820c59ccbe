// What a machine has, read from /proc and /sys of a root directory: "/" or a captured tree. Nothing here
// judges a link good: what is not there is said.
#pragma once

#include <string>
#include <vector>

#include "protocol/messages.hpp"

namespace troika::node {

struct NodePlan {
  std::string node;                     // put into the findings
  std::vector<std::string> interfaces;  // netdevs of the links, in order
};

// Memory, pressure, links, and findings: NO_RDMA, LINKS_MISSING, LINK_DOWN, CANNOT_TELL.
protocol::NodeFacts read_node(const std::string& root, const NodePlan& plan);

}  // namespace troika::node
