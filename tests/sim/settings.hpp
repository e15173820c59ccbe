// What a run is made of, what may go wrong in it, and what is counted over all runs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace troika::sim {

// Faults of the harness itself, put in to prove that the checks find them.
enum class Mutation {
  None,
  AgentSkipsFence,       // obeys every term and epoch
  AgentForgetsStages,    // a restarted agent does not look for what it left running
  AgentKeepsOldSession,  // obeys what still arrives over an earlier connection, and skips the epoch fence
  LeaderForgetsTerm,     // PersistTerm is not carried out
  LeaderForgetsReplica,  // PersistReplica is not carried out
  LeaderProvesNothing,   // every probe is answered as proven without looking
  LeaderLosesCommands,   // FinishCommand is not carried out
  GatewayForgetsRecord,  // admissions are not written down
  GatewayPassesLate,     // pass_by is ignored
};
inline constexpr std::array kMutations{
    std::pair{Mutation::None, std::string_view("none")},
    std::pair{Mutation::AgentSkipsFence, std::string_view("agent-skips-fence")},
    std::pair{Mutation::AgentForgetsStages, std::string_view("agent-forgets-stages")},
    std::pair{Mutation::AgentKeepsOldSession, std::string_view("agent-keeps-old-session")},
    std::pair{Mutation::LeaderForgetsTerm, std::string_view("leader-forgets-term")},
    std::pair{Mutation::LeaderForgetsReplica, std::string_view("leader-forgets-replica")},
    std::pair{Mutation::LeaderProvesNothing, std::string_view("leader-proves-nothing")},
    std::pair{Mutation::LeaderLosesCommands, std::string_view("leader-loses-commands")},
    std::pair{Mutation::GatewayForgetsRecord, std::string_view("gateway-forgets-record")},
    std::pair{Mutation::GatewayPassesLate, std::string_view("gateway-passes-late")},
};

// What is counted; counters.def says why.
struct Counters {
#define COUNTER(name) std::uint64_t name = 0;
#include "counters.def"
#undef COUNTER
  void add(const Counters& other) {
#define COUNTER(name) name += other.name;
#include "counters.def"
#undef COUNTER
  }
};

}  // namespace troika::sim
