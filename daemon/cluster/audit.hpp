// A proof of the model on all nodes that an operator asked for: what each node has said so far. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "policies/copies.hpp"
#include "protocol/messages.hpp"
#include "vocabulary/units.hpp"

namespace troika::daemon {

class Audit {
 public:
  // Without any progress of a node; then it is given up.
  static constexpr Duration kPatience = std::chrono::minutes{20};
  // Of all nodes, worst first: a reply must fit a message.
  static constexpr std::size_t kMostFindings = 2000;

  Audit(std::uint64_t request, bool deep, std::string manifest_digest)
      : request_(request), deep_(deep), manifest_digest_(std::move(manifest_digest)) {}

  std::uint64_t request() const { return request_; }
  bool deep() const { return deep_; }

  void add(Finding of_all) { findings_.push_back(std::move(of_all)); }
  void asked(const std::string& node, Instant now);
  // Nothing can be told of its model: not connected, refused, lost.
  void cannot_tell(const std::string& node, const std::string& why);
  // The same, where it was asked and is waited for.
  void lost(const std::string& node);
  void progressed(const std::string& node, const protocol::VerifyProgress& at, Instant now);
  void answered(const std::string& node, protocol::VerifyDone proof);
  void tick(Instant now);

  bool finished() const;
  std::vector<protocol::AuditedNode> nodes() const;
  // `re` is the asker's.
  protocol::AuditReply reply() const;

 private:
  struct Seen {
    protocol::AuditedNode line;
    Instant heard;
    std::vector<Finding> findings;
    policies::NodeCopies copies;
  };
  Seen* waited_for(const std::string& node);

  std::uint64_t request_;
  bool deep_;
  std::string manifest_digest_;
  std::vector<Finding> findings_;  // of no single node
  std::map<std::string, Seen> nodes_;
};

}  // namespace troika::daemon
