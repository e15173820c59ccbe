// Asking the leader: one connection a request, over its control socket or over TLS with the operator role.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "protocol/messages.hpp"
#include "vocabulary/result.hpp"
#include "vocabulary/units.hpp"

namespace troika::cli {

// A reply, or why there is none and the exit status that this means.
template <class T>
struct Answer {
  std::optional<T> reply;
  Exit failure = kGood;  // kUsage: our own certificates or address; kUnreachable; kWrong: refused;
                         // kCannotTell: the connection ended before the reply
  Error error{};
  std::string remedy{};  // what to do; empty: the error says it

  bool ok() const { return reply.has_value(); }
};

inline constexpr Duration kAskLimit =
    std::chrono::seconds{10};  // connecting, and one reply that needs no work

Answer<protocol::StatusReply> ask_status(const Global& leader, Duration limit = kAskLimit);
Answer<protocol::IncidentsReply> ask_incidents(const Global& leader,
                                               const protocol::IncidentsRequest& request,
                                               Duration limit = kAskLimit);
// Each progress text goes to `progress`. `silence` limits the time without any word of the leader, not the
// whole. `stop`, where there is one, is asked several times a second; true gives up waiting, and the command
// goes on.
Answer<protocol::CommandDone> give_command(const Global& leader, const protocol::Command& command,
                                           const std::function<void(std::string_view)>& progress,
                                           Duration silence, const std::function<bool()>& stop = {});

// Has every node prove its model; how it goes is told to `progress`. The proof ends with the connection.
Answer<protocol::AuditReply> ask_audit(const Global& leader, const protocol::AuditRequest& request,
                                       const std::function<void(const protocol::AuditStatus&)>& progress,
                                       Duration silence, const std::function<bool()>& stop);

}  // namespace troika::cli
