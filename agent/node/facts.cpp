#include "agent/node/facts.hpp"

#include <charconv>
#include <iterator>

#include "agent/node/links.hpp"
#include "platform/procfs.hpp"

namespace troika::node {
namespace {

// "MemTotal:       127600812 kB" of /proc/meminfo as bytes.
bool memory_line(std::string_view text, std::string_view key, Bytes& value) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return false;
  std::string_view rest = text.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  std::uint64_t kibibytes = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), kibibytes).ec != std::errc{}) return false;
  value = Bytes{kibibytes * 1024};
  return true;
}

Finding cannot_tell(const NodePlan& plan, const std::string& what, const std::string& why) {
  return finding(Code::CANNOT_TELL, plan.node, what, "cannot tell: " + why);
}

}  // namespace

protocol::NodeFacts read_node(const std::string& root, const NodePlan& plan) {
  protocol::NodeFacts facts;
  const auto meminfo = platform::read_virtual_file(root + "/proc/meminfo", 65536);
  if (!meminfo.ok() || !memory_line(*meminfo, "MemTotal:", facts.memory_total) ||
      !memory_line(*meminfo, "MemAvailable:", facts.memory_available))
    facts.findings.push_back(
        cannot_tell(plan, "memory", "/proc/meminfo does not say MemTotal and MemAvailable"));
  const platform::MemoryPressure pressure = platform::read_memory_pressure(root);
  facts.psi_memory_some = pressure.some;
  facts.psi_memory_full = pressure.full;
  if (pressure.some < 0 || pressure.full < 0)
    facts.findings.push_back(cannot_tell(plan, "memory_pressure",
                                         "/proc/pressure/memory is absent (a kernel without PSI, or psi=0)"));
  Links links = read_links(root, plan);
  facts.links = std::move(links.links);
  std::move(links.findings.begin(), links.findings.end(), std::back_inserter(facts.findings));
  return facts;
}

}  // namespace troika::node
