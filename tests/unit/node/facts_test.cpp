// What a machine has, from captured trees.
#include "agent/node/facts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "agent/node/links.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::node {
namespace {

class NodeTest : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& content) {
    const std::string whole = folder_ / path;
    ASSERT_TRUE(platform::make_directories(whole.substr(0, whole.rfind('/'))).ok());
    ASSERT_TRUE(platform::write_file_durably(whole, content).ok());
  }
  void netdev(const std::string& name, const std::string& operstate, const std::string& carrier,
              const std::string& speed) {
    put("sys/class/net/" + name + "/operstate", operstate + "\n");
    put("sys/class/net/" + name + "/carrier", carrier + "\n");
    put("sys/class/net/" + name + "/speed", speed + "\n");
  }
  void rdma(const std::string& device, const std::string& netdev_name) {
    ASSERT_TRUE(platform::make_directories(folder_ /
                                           ("sys/class/infiniband/" + device + "/device/net/" + netdev_name))
                    .ok());
  }
  protocol::NodeFacts read(std::vector<std::string> interfaces = {}) {
    return read_node(folder_.path(), {"spark-1", std::move(interfaces)});
  }
  static const Finding* find(const protocol::NodeFacts& facts, Code code) {
    const auto found = std::find_if(facts.findings.begin(), facts.findings.end(),
                                    [&](const Finding& f) { return f.code == code; });
    return found == facts.findings.end() ? nullptr : &*found;
  }
  platform::Folder folder_;
};

// Case C02.
TEST_F(NodeTest, MemoryIsBytesAndPressureIsPercent) {
  put("proc/meminfo",
      "MemTotal:       127600812 kB\nMemFree:          500000 kB\nMemAvailable:   117187500 kB\n");
  put("proc/pressure/memory",
      "some avg10=62.10 avg60=0.00 avg300=0.00 total=5\nfull avg10=41.00 avg60=0.00 avg300=0.00 total=5\n");
  const auto facts = read();
  EXPECT_EQ(facts.memory_total.count, 127600812ull * 1024);
  EXPECT_EQ(facts.memory_available.count, 117187500ull * 1024);
  EXPECT_DOUBLE_EQ(facts.psi_memory_some, 62.10);
  EXPECT_DOUBLE_EQ(facts.psi_memory_full, 41.00);
  EXPECT_EQ(find(facts, Code::CANNOT_TELL), nullptr);
}

TEST_F(NodeTest, WhatCannotBeReadIsSaid) {
  const auto facts = read();
  EXPECT_LT(facts.psi_memory_some, 0);
  EXPECT_LT(facts.psi_memory_full, 0);
  EXPECT_EQ(std::count_if(facts.findings.begin(), facts.findings.end(),
                          [](const Finding& f) { return f.code == Code::CANNOT_TELL; }),
            2);
}

// Case B01.
TEST_F(NodeTest, HealthyLinksOfASpark) {
  for (const auto& [device, name] :
       {std::pair{"rocep1s0f0", "enp1s0f0np0"}, {"roceP2p1s0f0", "enP2p1s0f0np0"}}) {
    netdev(name, "up", "1", "200000");
    rdma(device, name);
  }
  const auto facts = read({"enp1s0f0np0", "enP2p1s0f0np0"});
  ASSERT_EQ(facts.links.size(), 2u);
  for (const auto& link : facts.links) {
    EXPECT_EQ(link.state, "up");
    EXPECT_EQ(link.speed_mbps, 200000);
    EXPECT_TRUE(link.rdma);
  }
  EXPECT_EQ(find(facts, Code::NO_RDMA), nullptr);
  EXPECT_EQ(find(facts, Code::LINKS_MISSING), nullptr);
  const auto rdma = read_rdma(folder_.path());
  ASSERT_TRUE(rdma.ok());
  EXPECT_EQ(rdma->size(), 2u);
}

TEST_F(NodeTest, NoRdmaIsSaidAndNeverTakenForGood) {
  netdev("eth0", "up", "1", "10000");
  const auto facts = read({"eth0"});
  EXPECT_FALSE(facts.links.at(0).rdma);
  const Finding* f = find(facts, Code::NO_RDMA);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->severity, Severity::Info);
  EXPECT_EQ(f->message, "no RDMA device: links are TCP only");
  EXPECT_NE(find(read(), Code::NO_RDMA), nullptr) << "also without configured links";
}

// "No RDMA device" would be a guess.
TEST_F(NodeTest, RdmaDevicesThatCannotBeListedAreNotSaidToBeNone) {
  netdev("eth0", "up", "1", "10000");
  const std::string devices = folder_ / "sys/class/infiniband";
  std::filesystem::create_directories(folder_ / "sys/class");
  ASSERT_EQ(::symlink("infiniband", devices.c_str()), 0);  // of itself
  const auto facts = read({"eth0"});
  EXPECT_EQ(find(facts, Code::NO_RDMA), nullptr);
  EXPECT_TRUE(std::any_of(facts.findings.begin(), facts.findings.end(), [&](const Finding& f) {
    return f.code == Code::CANNOT_TELL && f.message.find(devices) != std::string::npos;
  }));
}

TEST_F(NodeTest, RdmaBehindOtherInterfacesDoesNotCount) {
  netdev("eth0", "up", "1", "10000");
  rdma("rocep1s0f0", "enp1s0f0np0");
  const Finding* f = find(read({"eth0"}), Code::NO_RDMA);
  EXPECT_NE(f, nullptr);
}

// Case B02: after a neighbour's reboot.
TEST_F(NodeTest, MissingAndDownInterfacesAreNamed) {
  netdev("enp1s0f0np0", "down", "0", "-1");
  const auto facts = read({"enp1s0f0np0", "enp1s0f1np1"});
  EXPECT_EQ(facts.links.at(0).state, "down");
  EXPECT_EQ(facts.links.at(0).speed_mbps, -1);
  EXPECT_EQ(facts.links.at(1).state, "absent");
  ASSERT_NE(find(facts, Code::LINKS_MISSING), nullptr);
  EXPECT_EQ(find(facts, Code::LINKS_MISSING)->subject, "enp1s0f1np1");
  ASSERT_NE(find(facts, Code::LINK_DOWN), nullptr);
  EXPECT_EQ(find(facts, Code::LINK_DOWN)->subject, "enp1s0f0np0");
}

TEST(ThisMachine, HasMemoryAndALoopback) {
  const auto facts = read_node("/", {"here", {"lo"}});
  EXPECT_GT(facts.memory_total.count, facts.memory_available.count);
  ASSERT_EQ(facts.links.size(), 1u);
  EXPECT_EQ(facts.links[0].state, "up");
  EXPECT_NE(std::find(facts.links[0].addresses.begin(), facts.links[0].addresses.end(), "127.0.0.1"),
            facts.links[0].addresses.end());
}

}  // namespace
}  // namespace troika::node
