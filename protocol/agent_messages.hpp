// Between leader and agents.
#pragma once

#include "protocol/message.hpp"

namespace troika::protocol {

// How a process ended, from its parent (the keeper). known is false when nobody saw it (the keeper was killed
// too).
struct ExitStatus {
  bool known = false;
  int code = 0;            // exit code where signal is 0
  int signal = 0;          // the signal that ended it, else 0
  bool requested = false;  // a stop had been asked for before it ended
  TROIKA_FIELDS(ExitStatus, "exit_status") {
    v.required("known", m.known);
    v.required("code", m.code);
    v.required("signal", m.signal);
    v.required("requested", m.requested);
  }
};

enum class StageState {
  Starting,     // keeper and process are being made
  Loading,      // runs, not ready
  Ready,        // ready by its own word; proven only after a Probe of its replica
  Exited,       // the process ended; leftovers not yet looked for
  Released,     // nothing is left: processes, port, shared memory
  NotReleased,  // something is left: see findings
  CannotTell,   // could not look whether something is left: see findings
};

// What an agent knows of one stage of one epoch.
struct StageReport {
  std::string replica;
  Rank rank;
  Epoch epoch;
  StageState state{};
  std::int64_t pid = 0;  // of the stage's main process, 0: none
  Bytes progress;        // bytes of weights read so far
  Bytes progress_total;  // 0: not known
  ExitStatus exit;       // in Exited and later
  std::string detail;    // last meaningful log line or reason, at most 512 characters
  std::vector<Finding> findings;
  TROIKA_FIELDS(StageReport, "stage_report") {
    v.required("replica", m.replica);
    v.required("rank", m.rank);
    v.required("epoch", m.epoch);
    v.required("state", m.state);
    v.optional("pid", m.pid);
    v.optional("progress", m.progress);
    v.optional("progress_total", m.progress_total);
    v.optional("exit", m.exit);
    v.optional("detail", m.detail);
    v.optional("findings", m.findings);
  }
};

// First message of an agent on each connection. Everything before it from the same node is void.
struct Hello {
  std::string cluster;
  std::string node;     // equals the certificate's name
  std::string version;  // of the agent
  std::string boot_id;
  std::uint64_t session = 0;                    // chosen at random for each connection
  Term highest_term;                            // highest the agent has obeyed; written down
  std::map<std::string, Epoch> highest_epochs;  // by replica; written down
  std::vector<StageReport> stages;   // everything of ours that exists on this node now, wanted or not
  std::string relay_address;         // host:port where gateways reach the relay
  std::string link_address;          // host:port where the stage before this one connects
  std::vector<std::string> engines;  // engine kinds this agent may start
  TROIKA_FIELDS(Hello, "hello") {
    v.required("cluster", m.cluster);
    v.required("node", m.node);
    v.required("version", m.version);
    v.required("boot_id", m.boot_id);
    v.required("session", m.session);
    v.required("highest_term", m.highest_term);
    v.required("highest_epochs", m.highest_epochs);
    v.required("stages", m.stages);
    v.required("relay_address", m.relay_address);
    v.required("link_address", m.link_address);
    v.optional("engines", m.engines);
  }
};

struct Welcome {
  Term term;
  std::string version;  // of the leader
  std::uint32_t heartbeat_ms = 1000;
  TROIKA_FIELDS(Welcome, "welcome") {
    v.required("term", m.term);
    v.required("version", m.version);
    v.optional("heartbeat_ms", m.heartbeat_ms);
  }
};

struct LinkFact {
  std::string netdev;
  bool rdma = false;             // an RDMA device stands behind it
  std::string state;             // "up", "down", "absent"
  std::int64_t speed_mbps = -1;  // -1: the device does not say
  std::vector<std::string> addresses;
  TROIKA_FIELDS(LinkFact, "link") {
    v.required("netdev", m.netdev);
    v.required("rdma", m.rdma);
    v.required("state", m.state);
    v.optional("speed_mbps", m.speed_mbps);
    v.optional("addresses", m.addresses);
  }
};

// Pressure stall figures in percent (0 to 100) of the last 10 s; negative: the kernel does not tell.
struct NodeFacts {
  Bytes memory_total;
  Bytes memory_available;
  double psi_memory_some = -1;
  double psi_memory_full = -1;
  std::vector<LinkFact> links;
  std::vector<Finding> findings;
  TROIKA_FIELDS(NodeFacts, "node_facts") {
    v.required("memory_total", m.memory_total);
    v.required("memory_available", m.memory_available);
    v.optional("psi_memory_some", m.psi_memory_some);
    v.optional("psi_memory_full", m.psi_memory_full);
    v.optional("links", m.links);
    v.optional("findings", m.findings);
  }
};

// Agent to leader each heartbeat_ms; the leader answers HeartbeatAck. Silence of either side beyond its limit
// ends the connection.
struct Heartbeat {
  NodeFacts facts;
  std::vector<StageReport> stages;
  TROIKA_FIELDS(Heartbeat, "heartbeat") {
    v.required("facts", m.facts);
    v.required("stages", m.stages);
  }
};

struct HeartbeatAck {
  TROIKA_FIELDS(HeartbeatAck, "heartbeat_ack") { (void)m, (void)v; }
};

// Something that happened to a stage, at once. Kept in the agent's spool until acknowledged, so that what
// happened while no leader listened is handed over later; `event` makes repeats harmless.
struct StageEvent {
  std::string event;  // unique: NODE-BOOTID-COUNTER
  std::string at;     // RFC 3339
  StageReport report;
  TROIKA_FIELDS(StageEvent, "stage_event") {
    v.required("event", m.event);
    v.required("at", m.at);
    v.required("report", m.report);
  }
};

struct StageEventAck {
  std::string event;
  TROIKA_FIELDS(StageEventAck, "stage_event_ack") { v.required("event", m.event); }
};

struct ManifestFile {
  Bytes bytes;
  std::string sha256;                 // 64 hex digits, or empty
  std::string git_sha1;               // 40 hex digits, or empty
  Bytes block_bytes{};                // size of each block below but the last; 0: none
  std::vector<std::string> blocks{};  // SHA-256 of each, as 64 hex digits: names the part that differs
  TROIKA_FIELDS(ManifestFile, "manifest_file") {
    v.required("bytes", m.bytes);
    v.optional("sha256", m.sha256);
    v.optional("git_sha1", m.git_sha1);
    v.optional("block_bytes", m.block_bytes);
    v.optional("blocks", m.blocks);
  }
};

struct Manifest {
  std::string model;
  std::string revision;
  std::map<std::string, ManifestFile> files;  // by path relative to the model directory
  std::vector<std::string> allowed{};  // names that may lie there besides, though a loader would take them
  TROIKA_FIELDS(Manifest, "manifest") {
    v.required("model", m.model);
    v.required("revision", m.revision);
    v.required("files", m.files);
    v.optional("allowed", m.allowed);
  }
};

// Leader to agent: prove the node for a start of `replica`. Answered by VerifyProgress (several) and one
// VerifyDone.
struct Verify {
  std::uint64_t request = 0;
  Term term;
  std::string replica;
  Rank rank;
  std::string engine;  // kind of engine that will run
  Manifest manifest;
  std::string manifest_digest;  // SHA-256 of the leader's manifest in canonical form (agent/model)
  TROIKA_FIELDS(Verify, "verify") {
    v.required("request", m.request);
    v.required("term", m.term);
    v.required("replica", m.replica);
    v.required("rank", m.rank);
    v.required("engine", m.engine);
    v.required("manifest", m.manifest);
    v.required("manifest_digest", m.manifest_digest);
  }
};

struct VerifyProgress {
  std::uint64_t request = 0;
  Bytes done;
  Bytes total;
  std::uint32_t files_done = 0;
  std::uint32_t files_total = 0;
  TROIKA_FIELDS(VerifyProgress, "verify_progress") {
    v.required("request", m.request);
    v.required("done", m.done);
    v.required("total", m.total);
    v.required("files_done", m.files_done);
    v.required("files_total", m.files_total);
  }
};

struct VerifyDone {
  std::uint64_t request = 0;
  std::string manifest_digest;  // of what was proven
  std::uint32_t files = 0;      // files whose bytes are proven
  std::uint32_t shards = 0;     // of these, safetensors shards
  std::uint64_t tensors = 0;
  Bytes bytes;
  double seconds = 0;
  std::vector<Finding> findings;  // verdict_of(findings) is the verdict
  std::uint32_t cached = 0;       // of the files: by the record of an earlier proof
  std::vector<std::string>
      unproven;  // files of the manifest whose bytes are not proven, at most kMostUnproven
  bool all_proven_but_these = false;  // false: of the files that are not named nothing can be said
  static constexpr std::size_t kMostUnproven = 256;
  static constexpr std::size_t kMostUnprovenBytes = 128u << 10;  // of their names
  TROIKA_FIELDS(VerifyDone, "verify_done") {
    v.required("request", m.request);
    v.required("manifest_digest", m.manifest_digest);
    v.required("files", m.files);
    v.required("shards", m.shards);
    v.required("tensors", m.tensors);
    v.required("bytes", m.bytes);
    v.required("seconds", m.seconds);
    v.required("findings", m.findings);
    v.optional("cached", m.cached);
    v.optional("unproven", m.unproven);
    v.optional("all_proven_but_these", m.all_proven_but_these);
  }
};

// Leader to agent: prove the model alone, whatever the node is doing. Answered by AuditProgress (several) and
// one AuditDone, or by the refusal BUSY while a Verify runs. A Verify ends it; it is answered then all the
// same. A new one takes the place of the one before, which is not answered.
struct Audit {
  std::uint64_t request = 0;
  Term term;
  bool deep = false;  // read every byte, also of files that did not change since their proof
  Manifest manifest;
  std::string manifest_digest;
  TROIKA_FIELDS(Audit, "audit") {
    v.required("request", m.request);
    v.required("term", m.term);
    v.optional("deep", m.deep);
    v.required("manifest", m.manifest);
    v.required("manifest_digest", m.manifest_digest);
  }
};

struct AuditProgress {
  VerifyProgress at;
  TROIKA_FIELDS(AuditProgress, "audit_progress") { v.required("at", m.at); }
};

struct AuditDone {
  VerifyDone proof;
  TROIKA_FIELDS(AuditDone, "audit_done") { v.required("proof", m.proof); }
};

// Leader to agent: nobody waits for it any more.
struct EndAudit {
  std::uint64_t request = 0;
  TROIKA_FIELDS(EndAudit, "end_audit") { v.required("request", m.request); }
};

// The settings of the engine that the leader fixes; paths, addresses and programs are the agent's own.
struct EnginePlan {
  std::string kind;   // "native", "sglang", ...
  std::string model;  // served name
  Tokens context_length;
  Tokens chunked_prefill;
  std::uint32_t max_running = 0;
  std::vector<std::uint32_t> layers;  // of each rank, in order
  std::uint32_t decode_graph_batch = 0;
  double memory_fraction = 0;
  TROIKA_FIELDS(EnginePlan, "engine_plan") {
    v.required("kind", m.kind);
    v.required("model", m.model);
    v.required("context_length", m.context_length);
    v.required("chunked_prefill", m.chunked_prefill);
    v.required("max_running", m.max_running);
    v.required("layers", m.layers);
    v.optional("decode_graph_batch", m.decode_graph_batch);
    v.optional("memory_fraction", m.memory_fraction);
  }
};

// Leader to agent: start one rank of one epoch. Answered by StageEvents; refused with STALE_TERM,
// STALE_EPOCH, BUSY (another epoch of ours is not released on this node) or NOT_ALLOWED (engine kind).
struct StartStage {
  std::uint64_t request = 0;
  Term term;
  std::string replica;
  Rank rank;
  Epoch epoch;
  EnginePlan engine;
  std::string next_link;  // host:port of the next rank's link (the last rank's is rank 0's)
  std::string link_key;   // 64 hex digits, secret: keys the handshake between this epoch's stages
  TROIKA_FIELDS(StartStage, "start_stage") {
    v.required("request", m.request);
    v.required("term", m.term);
    v.required("replica", m.replica);
    v.required("rank", m.rank);
    v.required("epoch", m.epoch);
    v.required("engine", m.engine);
    v.required("next_link", m.next_link);
    v.required("link_key", m.link_key);
  }
};

// Leader to agent: end the stage of this epoch or a lower one, and prove the release. Idempotent; answered by
// StageEvents that end in Released, NotReleased or CannotTell (Released at once when nothing is there).
struct StopStage {
  std::uint64_t request = 0;
  Term term;
  std::string replica;
  Rank rank;
  Epoch epoch;
  std::uint32_t grace_ms = 0;  // between SIGTERM and SIGKILL; 0: SIGKILL at once
  std::string reason;
  TROIKA_FIELDS(StopStage, "stop_stage") {
    v.required("request", m.request);
    v.required("term", m.term);
    v.required("replica", m.replica);
    v.required("rank", m.rank);
    v.required("epoch", m.epoch);
    v.required("grace_ms", m.grace_ms);
    v.optional("reason", m.reason);
  }
};

// Leader to the agent of rank 0: prove generation by a real completion at the stage, and read the settings in
// force.
struct Probe {
  std::uint64_t request = 0;
  Term term;
  std::string replica;
  Epoch epoch;
  std::string prompt;
  std::uint32_t max_tokens = 0;
  std::uint32_t timeout_ms = 0;
  TROIKA_FIELDS(Probe, "probe") {
    v.required("request", m.request);
    v.required("term", m.term);
    v.required("replica", m.replica);
    v.required("epoch", m.epoch);
    v.required("prompt", m.prompt);
    v.required("max_tokens", m.max_tokens);
    v.required("timeout_ms", m.timeout_ms);
  }
};

struct ProbeDone {
  std::uint64_t request = 0;
  bool completed = false;    // a whole answer came
  Tokens completion_tokens;  // by the answer's own usage
  Tokens counter_advance;    // of the engine's generation counter around the completion
  std::string text;          // at most 1 KiB
  double seconds = 0;
  Tokens kv_capacity;    // tokens the KV cache holds, 0: not told
  EnginePlan effective;  // settings in force, as the engine tells
  std::string error;     // why not, where completed is false
  TROIKA_FIELDS(ProbeDone, "probe_done") {
    v.required("request", m.request);
    v.required("completed", m.completed);
    v.optional("completion_tokens", m.completion_tokens);
    v.optional("counter_advance", m.counter_advance);
    v.optional("text", m.text);
    v.optional("seconds", m.seconds);
    v.optional("kv_capacity", m.kv_capacity);
    v.optional("effective", m.effective);
    v.optional("error", m.error);
  }
};

}  // namespace troika::protocol
