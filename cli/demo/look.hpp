// Reading a StatusReply: who serves, which process and epoch each stage has. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "protocol/messages.hpp"

namespace troika::demo {

// Null: the leader does not know it.
const protocol::ReplicaStatus* replica(const protocol::StatusReply& status, const std::string& name);
const protocol::StageStatus* stage(const protocol::StatusReply& status, const std::string& id);  // "a/1"

bool all_connected(const protocol::StatusReply& status);
// Serving and proven, every stage ready with a process, all of the replica's epoch.
bool serves(const protocol::StatusReply& status, const std::string& name);
bool all_serve(const protocol::StatusReply& status);
// Where the next request goes; empty: nowhere.
std::string routed(const protocol::StatusReply& status);
std::string other(const protocol::StatusReply& status, const std::string& name);

struct Running {
  std::int64_t pid = 0;
  std::uint64_t epoch = 0;
  bool operator==(const Running&) const = default;
};
std::map<std::string, Running> running_stages(const protocol::StatusReply& status);

}  // namespace troika::demo
