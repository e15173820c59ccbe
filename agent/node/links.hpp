// Network devices and the RDMA devices behind them.
#pragma once

#include <string>
#include <vector>

#include "agent/node/facts.hpp"

namespace troika::node {

struct Links {
  std::vector<protocol::LinkFact> links;
  std::vector<Finding> findings;
};
Links read_links(const std::string& root, const NodePlan& plan);

// netdev -> RDMA device, of every function that has one.
struct RdmaFunction {
  std::string device;  // "rocep1s0f0"
  std::string netdev;  // "enp1s0f0np0"
};
Result<std::vector<RdmaFunction>> read_rdma(const std::string& root);

}  // namespace troika::node
