// Between gateway and leader (Unix control socket), and between gateway and agent (relay).
#pragma once

#include "protocol/message.hpp"

namespace troika::protocol {

struct GatewayHello {
  std::int64_t pid = 0;
  std::string version;
  std::uint64_t generation = 0;  // of the route in force, 0: none
  Term term;                     // of the leader that gave it
  TROIKA_FIELDS(GatewayHello, "gateway_hello") {
    v.required("pid", m.pid);
    v.required("version", m.version);
    v.required("generation", m.generation);
    v.required("term", m.term);
  }
};

struct RouteTarget {
  std::string replica;
  Epoch epoch;
  std::string relay_address;  // of the agent of rank 0
  std::string node;           // its name, as in its certificate
  Tokens kv_capacity;         // 0: not known
  TROIKA_FIELDS(RouteTarget, "route_target") {
    v.required("replica", m.replica);
    v.required("epoch", m.epoch);
    v.required("relay_address", m.relay_address);
    v.required("node", m.node);
    v.optional("kv_capacity", m.kv_capacity);
  }
};

// Leader to gateway: where requests go from now on. targets[0] gets the next request, the others take over
// from it; with `spread` they all get requests (active-active). Empty: none, with the reason for clients.
// Written down by the gateway before RouteApplied.
struct Route {
  Term term;
  std::uint64_t generation = 0;
  std::vector<RouteTarget> targets;
  bool draining = false;
  bool spread = false;
  std::string reason;
  TROIKA_FIELDS(Route, "route") {
    v.required("term", m.term);
    v.required("generation", m.generation);
    v.required("targets", m.targets);
    v.required("draining", m.draining);
    v.optional("spread", m.spread);
    v.optional("reason", m.reason);
  }
};

struct RouteApplied {
  Term term;
  std::uint64_t generation = 0;
  TROIKA_FIELDS(RouteApplied, "route_applied") {
    v.required("term", m.term);
    v.required("generation", m.generation);
  }
};

// Requests in flight at one epoch of a replica.
struct TargetLoad {
  std::string replica;
  Epoch epoch;
  std::uint32_t in_flight = 0;
  TROIKA_FIELDS(TargetLoad, "target_load") {
    v.required("replica", m.replica);
    v.required("epoch", m.epoch);
    v.required("in_flight", m.in_flight);
  }
};

// Gateway to leader, each second and when one of them changes.
struct GatewayStats {
  std::uint32_t in_flight = 0;
  std::uint64_t admitted = 0;  // since the ledger began
  std::uint64_t refused = 0;   // since the gateway started
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::vector<TargetLoad> loads;  // only those with requests in flight
  std::uint64_t generation = 0;   // of the route in force when these figures were taken
  TROIKA_FIELDS(GatewayStats, "gateway_stats") {
    v.required("in_flight", m.in_flight);
    v.required("admitted", m.admitted);
    v.required("refused", m.refused);
    v.required("completed", m.completed);
    v.required("failed", m.failed);
    v.optional("loads", m.loads);
    v.optional("generation", m.generation);
  }
};

// Gateway to leader: a request that an engine failed (TRUNCATED, STALLED, ...).
struct RequestFailed {
  std::string request;
  std::string replica;
  Epoch epoch;
  Finding finding;
  TROIKA_FIELDS(RequestFailed, "request_failed") {
    v.required("request", m.request);
    v.required("replica", m.replica);
    v.required("epoch", m.epoch);
    v.required("finding", m.finding);
  }
};

// Gateway to agent, first message of a relay connection (one request each). The body follows in raw frames
// until body_bytes; the agent answers RelayHead, raw frames, RelayEnd. Only paths that gateways use are
// relayed, and only to the stage of exactly this epoch. Either side closes to cancel.
struct RelayRequest {
  std::string replica;
  Epoch epoch;
  std::string method;
  std::string path;
  Bytes body_bytes;
  std::string request;  // id, for the logs of both sides
  TROIKA_FIELDS(RelayRequest, "relay_request") {
    v.required("replica", m.replica);
    v.required("epoch", m.epoch);
    v.required("method", m.method);
    v.required("path", m.path);
    v.required("body_bytes", m.body_bytes);
    v.optional("request", m.request);
  }
};

struct RelayHead {
  std::uint32_t status = 0;
  std::string content_type;
  TROIKA_FIELDS(RelayHead, "relay_head") {
    v.required("status", m.status);
    v.required("content_type", m.content_type);
  }
};

// complete: the engine ended its answer by the rules of HTTP. Otherwise error says what cut it.
struct RelayEnd {
  bool complete = false;
  std::string error;
  TROIKA_FIELDS(RelayEnd, "relay_end") {
    v.required("complete", m.complete);
    v.optional("error", m.error);
  }
};

}  // namespace troika::protocol
