#include "agent/node/links.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "platform/files.hpp"
#include "platform/procfs.hpp"

namespace troika::node {
namespace {

using protocol::LinkFact;

// Without the newline; empty where it cannot be read (carrier and speed of a device that is down say EINVAL).
std::string word_of(const std::string& path) {
  auto text = platform::read_virtual_file(path, 4096);
  if (!text.ok()) return {};
  while (!text->empty() && (text->back() == '\n' || text->back() == ' '))
    text->pop_back();
  return *std::move(text);
}

bool exists(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0;
}

// Of the running system only: a captured tree's kernel cannot be asked.
std::vector<std::string> addresses_of(const std::string& netdev) {
  std::vector<std::string> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> held{list, ::freeifaddrs};
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || netdev != one->ifa_name) continue;
    char text[INET6_ADDRSTRLEN];
    const void* address = nullptr;
    if (one->ifa_addr->sa_family == AF_INET)
      address = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    else if (one->ifa_addr->sa_family == AF_INET6)
      address = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
    if (address != nullptr && ::inet_ntop(one->ifa_addr->sa_family, address, text, sizeof text) != nullptr)
      out.emplace_back(text);
  }
  return out;
}

LinkFact read_link(const std::string& root, const std::string& netdev, bool rdma) {
  LinkFact link;
  link.netdev = netdev;
  link.rdma = rdma;
  const std::string folder = root + "/sys/class/net/" + netdev;
  if (!exists(folder)) {
    link.state = "absent";
    return link;
  }
  const std::string operstate = word_of(folder + "/operstate");
  const bool carrier = word_of(folder + "/carrier") == "1";
  // The loopback device and some tunnels say "unknown" and work.
  link.state = carrier && (operstate == "up" || operstate == "unknown") ? "up" : "down";
  const std::string speed = word_of(folder + "/speed");
  const long mbps = std::strtol(speed.c_str(), nullptr, 10);
  link.speed_mbps = mbps > 0 ? mbps : -1;
  if (root == "/") link.addresses = addresses_of(netdev);
  return link;
}

}  // namespace

Result<std::vector<RdmaFunction>> read_rdma(const std::string& root) {
  std::vector<RdmaFunction> found;
  const std::string base = root + "/sys/class/infiniband";
  TROIKA_TRY(devices, platform::list_directory(base, platform::Absent::Empty));
  for (const std::string& device : devices) {
    TROIKA_TRY(netdevs,
               platform::list_directory(base + "/" + device + "/device/net", platform::Absent::Empty));
    for (const std::string& netdev : netdevs)
      found.push_back({device, netdev});
  }
  return found;
}

Links read_links(const std::string& root, const NodePlan& plan) {
  Links out;
  const auto read = read_rdma(root);
  const std::vector<RdmaFunction> rdma = read.ok() ? *read : std::vector<RdmaFunction>{};
  bool any_rdma = false;
  for (const std::string& netdev : plan.interfaces) {
    const bool has_rdma =
        std::any_of(rdma.begin(), rdma.end(), [&](const auto& f) { return f.netdev == netdev; });
    any_rdma = any_rdma || has_rdma;
    out.links.push_back(read_link(root, netdev, has_rdma));
    const LinkFact& link = out.links.back();
    if (link.state == "absent")
      out.findings.push_back(
          finding(Code::LINKS_MISSING, plan.node, netdev, "interface " + netdev + " of [fabric] is not there",
                  "correct [fabric] interfaces in agent.toml; after a neighbour's reboot the port may "
                  "have been unplugged by the hot-plug handler: reboot this node"));
    else if (link.state == "down")
      out.findings.push_back(finding(Code::LINK_DOWN, plan.node, netdev,
                                     "interface " + netdev + " has no link",
                                     "check the cable and the other end; set the interface up"));
  }
  if (!read.ok())
    out.findings.push_back(finding(Code::CANNOT_TELL, plan.node, plan.node,
                                   "whether RDMA devices stand behind the links: " + read.error().message(),
                                   "let the agent's user list it"));
  else if (!any_rdma && !rdma.empty() && !plan.interfaces.empty())
    out.findings.push_back(finding(Code::NO_RDMA, plan.node, plan.node,
                                   "no RDMA device stands behind the links' interfaces: links are TCP only",
                                   "name the interfaces of the RDMA devices in [fabric] interfaces",
                                   {{"rdma_devices", static_cast<std::int64_t>(rdma.size())}}));
  else if (!any_rdma)
    out.findings.push_back(
        finding(Code::NO_RDMA, plan.node, plan.node, "no RDMA device: links are TCP only", {}, {}));
  return out;
}

}  // namespace troika::node
